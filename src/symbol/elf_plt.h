/* Names of procedure linkage stubs, which have no symbols: "NAME@plt" where the stub's own jump and the relocation of
 * the slot that it jumps through say so. */
#ifndef ASSAY_SYMBOL_ELF_PLT_H
#define ASSAY_SYMBOL_ELF_PLT_H

#include "symbol/elf_file.h"

struct elf_plt;

/* *ret is NULL where the file has no stubs. Fails when out of memory. */
int elf_plt_new(const struct elf_file *file, struct elf_plt **ret, struct error *err);
void elf_plt_free(struct elf_plt *p);

/* Whether the address is in a section of stubs (p may be NULL); *ret_name is whose stub it is, mangled, perhaps with
 * @VERSION, or NULL: not known. */
bool elf_plt_find(const struct elf_plt *p, uint64_t address, const char **ret_name);

#endif
