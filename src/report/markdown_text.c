#include "report/markdown_text.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

void markdown_put_text(struct buf *out, const char *text, const char *marks, size_t columns)
{
	CLEANUP(buf_release) struct buf line;

	buf_init(&line);
	utf8_append_line(&line, text, columns);
	for (const char *c = line.text; *c; c++) {
		if (strchr(marks, *c))
			buf_putc(out, '\\');
		buf_putc(out, *c);
	}
}
