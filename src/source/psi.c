#include "source/psi.h"

#include <math.h>
#include <string.h>

#include "base/procfs.h"

/* The total= (in microseconds) of the line that starts with `word`, in seconds. */
static double total_of(const char *text, size_t length, const char *word)
{
	const char *end = text + length, *line_end;

	for (const char *line = text; line < end; line = line_end + 1) {
		const char *total;
		uint64_t us;

		line_end = memchr(line, '\n', (size_t)(end - line));
		if (!line_end)
			break;
		if ((size_t)(line_end - line) <= strlen(word) || memcmp(line, word, strlen(word)) != 0)
			continue;
		total = memmem(line, (size_t)(line_end - line), " total=", 7);
		if (!total)
			continue;
		total += 7;
		return scan_u64(&total, line_end, &us) ? (double)us / 1e6 : NAN;
	}
	return NAN;
}

ssize_t psi_read(int fd, struct psi *ret)
{
	char text[512];
	ssize_t length = procfs_read_record(fd, text, sizeof text);

	if (length < 0)
		return length;
	ret->some_s = total_of(text, (size_t)length, "some ");
	ret->full_s = total_of(text, (size_t)length, "full ");
	return !isnan(ret->some_s) || !isnan(ret->full_s);
}
