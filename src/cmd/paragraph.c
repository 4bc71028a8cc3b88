#include "cmd/paragraph.h"

#include "base/cleanup.h"
#include "base/wrap.h"

size_t paragraph_width(const char *text)
{
	return wrap_width(text);
}

void paragraph_print(FILE *out, const char *text, size_t at, size_t indent)
{
	CLEANUP(buf_release) struct buf folded;

	buf_init(&folded);
	wrap_append(&folded, text, at, indent, PARAGRAPH_WIDTH);
	fwrite(folded.text, 1, folded.length, out);
}
