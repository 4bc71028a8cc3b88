/* Any bytes as a model file: the reader refuses them with a sentence, or gives figures that fit the file. An input
 * without the magic is taken for what stands behind it and the version. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fs.h"
#include "ingest/gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

static void check(const struct gguf *g, uint64_t size)
{
	struct gguf twice = *g;
	double weights = gguf_bytes_per_token(g), cache = gguf_kv_bytes_per_position(g);

	require(g->file_bytes == size && g->tensor_bytes <= size);
	require(g->embedding_bytes + g->lookup_bytes + g->expert_bytes + g->prediction_bytes <= g->tensor_bytes);
	require(memchr(g->architecture, '\0', sizeof g->architecture) != NULL);
	require(weights >= 0 && weights <= (double)size);
	require(isnan(cache) || cache > 0);
	gguf_add(&twice, g);
	require(twice.tensor_bytes == 2 * g->tensor_bytes && twice.layers == g->layers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char start[] = {'G', 'G', 'U', 'F', 3, 0, 0, 0};
	struct gguf g;
	struct error err;
	char path[64];
	int fd = memfd_create("model", MFD_CLOEXEC);

	require(fd >= 0);
	if (size < 4 || memcmp(data, "GGUF", 4) != 0)
		require(fs_write_all(fd, start, sizeof start) == 0);
	require(fs_write_all(fd, data, size) == 0);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	require(gguf_is(path));
	if (gguf_read(path, &g, &err) == 0)
		check(&g, (uint64_t)lseek(fd, 0, SEEK_END));
	else
		require(strncmp(err.text, path, strlen(path)) == 0);
	close(fd);
	return 0;
}
