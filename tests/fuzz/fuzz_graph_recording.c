/* Any bytes as a recording of calls: what is damaged is left out with a note, and what is taken can be. The input is
 * the text of the process up to its first 0, then the bytes of one thread's file; its open calls, which lie from
 * CALLS_FRAMES_AT on, stand in an input behind FRAMES_MARK. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/graph_recording.h"
#include "wire/graph.h"

#define FRAMES_MARK "FRAMES!!"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

static void put(const char *folder, const char *suffix, const uint8_t *bytes, size_t size, off_t at)
{
	char path[128];
	int fd;

	snprintf(path, sizeof path, "%s/" CALLS_FILE_PREFIX "1-0%s", folder, suffix);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	require(fd >= 0 && pwrite(fd, bytes, size, at) == (ssize_t)size && close(fd) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char folder[] = "/tmp/assay-fuzz-XXXXXX";
	const uint8_t *text_end = size ? memchr(data, 0, size) : NULL;
	size_t text = text_end ? (size_t)(text_end - data) : size, rest = text_end ? size - text - 1 : 0;
	const uint8_t *thread = data + text + (text_end ? 1 : 0);
	const uint8_t *frames = rest ? memmem(thread, rest, FRAMES_MARK, strlen(FRAMES_MARK)) : NULL;
	struct calls_recording r;
	struct warnings notes;
	struct error err = {""};

	require(mkdtemp(folder) != NULL);
	put(folder, CALLS_PROCESS_SUFFIX, data, text, 0);
	put(folder, ".0", thread, frames ? (size_t)(frames - thread) : rest, 0);
	if (frames)
		put(folder, ".0", frames + 8, rest - (size_t)(frames - thread) - 8, CALLS_FRAMES_AT + 32);
	calls_recording_init(&r);
	warnings_init(&notes);
	require(calls_recording_read(folder, &r, &notes, &err) == 0 || err.text[0]);
	for (size_t i = 0; i < r.count; i++)
		for (size_t j = 0; j < r.processes[i].sum_count; j++) {
			const struct calls_sum *s = &r.processes[i].sums[j];

			require(s->callee && s->self_ns >= 0 && s->total_ns >= 0 && s->primitive <= s->calls);
		}
	require(calls_recording_remove(folder, NULL) == 0 && rmdir(folder) == 0);
	calls_recording_release(&r);
	warnings_release(&notes);
	return 0;
}
