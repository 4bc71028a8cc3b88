/* A whole run directory of hostile files through what `assay recover` does. The input: three little-endian 32-bit
 * lengths, then the bytes of the monitor segment, the output segment, the markers file, and the log of standard output.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "record/finish.h"
#include "record/judging.h"
#include "report/markdown.h"
#include "report/summary.h"
#include "store/runjson.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/tmp/assay-fuzz-XXXXXX";
static struct rundir dir;

static void remove_folder(void)
{
	const char *const files[] = {dir.monitor_seg, dir.output_seg, dir.markers_log, dir.stdout_log, dir.timeline_h5};

	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		unlink(files[i]);
	rmdir(dir.segments);
	rmdir(folder);
	rundir_release(&dir);
}

static void make_folder(void)
{
	struct error err;

	rundir_init(&dir);
	if (!mkdtemp(folder) || rundir_open(&dir, folder, &err) < 0 || (mkdir(dir.segments, 0777) < 0)) {
		fprintf(stderr, "no scratch folder\n");
		abort();
	}
	atexit(remove_folder);
}

static size_t put(const char *path, const uint8_t *data, size_t size, size_t length)
{
	struct error err;

	length = length < size ? length : size;
	if (fs_write_file(path, data, length, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	return length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *paths[3];
	uint32_t lengths[3];
	struct buf text;
	struct judging_options judging = {.probe = false};
	struct run run;
	json_t *json;

	if (!dir.path)
		make_folder();
	if (size < sizeof lengths)
		return 0;
	memcpy(lengths, data, sizeof lengths);
	data += sizeof lengths;
	size -= sizeof lengths;
	paths[0] = dir.monitor_seg;
	paths[1] = dir.output_seg;
	paths[2] = dir.markers_log;
	for (int i = 0; i < 3; i++) {
		size_t used = put(paths[i], data, size, lengths[i]);

		data += used;
		size -= used;
	}
	put(dir.stdout_log, data, size, size);
	run_init(&run);
	buf_init(&text);
	if (finish_run(&dir, NULL, FINISH_RECOVERED, NULL, &run, NULL) == 0) {
		judging_run(&run, NULL, &judging, NULL);
		json = runjson_build(&run, NULL);
		markdown_print(&run, &text);
		summary_print(&run, "x", true, 80, &text);
		json_decref(json);
	}
	buf_release(&text);
	run_release(&run);
	return 0;
}
