/* Stands in for libFuzzer: feeds the files of a corpus to a fuzz target, once each. So every compiler and sanitizer run
 * repeats what fuzzing has found. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX ((size_t)64 << 20)

static int replay(const char *path)
{
	CLEANUP(buf_release) struct buf text;
	CLEANUP(free_cleanup) uint8_t *exact = NULL;
	struct error err;

	buf_init(&text);
	if (fs_read_file(path, INPUT_MAX, &text, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return -1;
	}
	exact = malloc(text.length ? text.length : 1); /* of the exact size, so that reading past its end is noticed */
	if (!exact)
		return -1;
	memcpy(exact, text.text, text.length);
	return LLVMFuzzerTestOneInput(exact, text.length);
}

int main(int argc, char **argv)
{
	DIR *corpus = argc == 2 ? opendir(argv[1]) : NULL;
	unsigned count = 0;

	if (!corpus) {
		fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
		return 2;
	}
	for (struct dirent *entry; (entry = readdir(corpus));) {
		CLEANUP(free_cleanup) char *path = fs_join(argv[1], entry->d_name);

		if (entry->d_name[0] == '.')
			continue;
		if (!path || replay(path) != 0)
			return 1;
		count++;
	}
	closedir(corpus);
	printf("%u inputs\n", count);
	return count == 0;
}
