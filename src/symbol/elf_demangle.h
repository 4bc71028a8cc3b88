/* C++ and Rust names for people. A hostile name costs bounded time and memory: what would grow too long stays as it
 * is. */
#ifndef ASSAY_SYMBOL_ELF_DEMANGLE_H
#define ASSAY_SYMBOL_ELF_DEMANGLE_H

/* Owned; NULL where the name is not mangled, too long, or there is no memory. */
char *elf_demangle(const char *name);

/* The name to show of a symbol: without @VERSION, demangled where it is mangled. Owned, NULL when out of memory. */
char *elf_demangle_symbol(const char *name);

#endif
