#include "exec/snippet.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/fs.h"

#define OURS "#line 1 \"assay\"\n"

static void put_quoted(struct buf *out, const char *text)
{
	buf_putc(out, '"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			buf_putc(out, '\\');
		buf_putc(out, *text == '\n' ? ' ' : *text);
	}
	buf_putc(out, '"');
}

/* In a name after #include a backslash is itself, and a quotation mark ends it: angle brackets can have one. */
static void put_include(struct buf *out, const char *path)
{
	bool quoted = strchr(path, '"') != NULL;

	buf_printf(out, "%c%s%c", quoted ? '<' : '"', path, quoted ? '>' : '"');
}

/* A file that is there, or a path, is the user's, from where he stands; all else is the system's. */
static void put_header(struct buf *out, const char *name)
{
	CLEANUP(free_cleanup) char *path = NULL;
	CLEANUP(buf_release) struct buf label;

	buf_init(&label);
	buf_printf(&label, "-I %s", name);
	buf_puts(out, "#line 1 ");
	put_quoted(out, label.text);
	buf_puts(out, "\n#include ");
	if (*name == '<' || *name == '"') {
		buf_puts(out, name);
	} else if (fs_exists(name)) {
		path = fs_absolute(name);
		put_include(out, path ? path : name);
	} else {
		buf_printf(out, "<%s>", name);
	}
	buf_putc(out, '\n');
}

/* The user's text has lines of its own: it may end in a comment, or hold directives. The semicolon that may be missing
 * stands behind its next line, which a backslash at its end may take: what the compiler misses there is at the end of
 * the text. */
static void put_text(struct buf *out, const char *name, const char *text)
{
	buf_printf(out, "#line 1 \"%s\"\n%s\n\n;\n" OURS, name, text);
}

/* Of the two functions one has the user's text, all else is the same. The loop is not left to the optimiser: the empty
 * instruction keeps it from being removed, and unrolling makes its own cost small. */
static void put_loop(struct buf *out, const char *name, const struct snippet_text *text)
{
	bool alone = text->each != NULL, full = strcmp(name, "snippet_statement") == 0;

	buf_printf(out, "__attribute__((noinline, aligned(64))) void %s(struct snippet_batch *assay_batch)\n{\n"
			"uint64_t assay_left;\n", name);
	if (full && text->setup)
		put_text(out, "setup", text->setup);
	buf_puts(out, "while (snippet_next(assay_batch)) {\nASSAY_UNROLL\n"
		      "for (assay_left = assay_batch->number; assay_left; assay_left--) {\n"
		      "__asm__ __volatile__(\"\");\n");
	if (full && alone)
		put_text(out, "each", text->each);
	buf_puts(out, alone ? "snippet_start();\n" : "");
	buf_puts(out, "{\n");
	if (full)
		put_text(out, "statement", text->statement);
	buf_puts(out, "}\n");
	buf_puts(out, alone ? "snippet_stop();\n" : "");
	buf_puts(out, "}\nassay_batch->left = assay_left;\n}\n}\n");
}

void snippet_source(const struct snippet_text *text, const char *const *headers, const char *folder, struct buf *out)
{
	CLEANUP(buf_release) struct buf path;

	buf_init(&path);
	/* The user's headers come first, so that feature macros in them count. */
	for (size_t i = 0; headers && headers[i]; i++)
		if (!fs_is_dir(headers[i]))
			put_header(out, headers[i]);
	buf_puts(out, OURS "#include ");
	buf_printf(&path, "%s/snippet_runner.h", folder);
	put_include(out, path.text);
	buf_clear(&path);
	buf_printf(&path, "%s/assay_measure.h", folder);
	buf_puts(out, "\n#include ");
	put_include(out, path.text);
	buf_puts(out, "\n#ifdef __clang__\n#define ASSAY_UNROLL _Pragma(\"unroll 4\")\n#else\n"
		      "#define ASSAY_UNROLL _Pragma(\"GCC unroll 4\")\n#endif\n");
	put_loop(out, "snippet_empty", text);
	put_loop(out, "snippet_statement", text);
}
