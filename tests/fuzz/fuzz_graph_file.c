/* Any bytes as a graph file: refused with a sentence, or taken, and then what is written of it is read as the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct error err = {""};
	struct graph g, back;
	struct buf first, second;
	int result;

	require(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	graph_init(&g), graph_init(&back);
	buf_init(&first), buf_init(&second);
	result = graph_file_read(text, size, "fuzzed", &g, &err);
	require((result < 0) == (err.text[0] != '\0'));
	if (result == 0) {
		graph_file_write(&g, &first);
		require(graph_file_read(first.text, first.length, "written", &back, &err) == 0);
		graph_file_write(&back, &second);
		require(strcmp(first.text, second.text) == 0);
	}
	buf_release(&first), buf_release(&second);
	graph_release(&g), graph_release(&back);
	free(text);
	return 0;
}
