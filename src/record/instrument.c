#include "record/instrument.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "record/call_graph.h"
#include "record/preload_target.h"
#include "record/recordings.h"
#include "store/graph_recording.h"
#include "wire/graph.h"

/* Beside the program where it was built; installed it is one folder above the plug-ins. */
static char *find_library(struct error *err)
{
	CLEANUP(free_cleanup) char *found = fs_find_companion("libassay.so");

	if (!found)
		found = fs_find_companion("../libassay.so");
	if (!found) {
		error_set(err, "libassay.so is neither beside the program nor installed with it: recording calls needs "
			       "it");
		return NULL;
	}
	return preload_check(found, "libassay.so", err);
}

char **instrument_prepare(const struct rundir *dir, const char *const *env, struct error *err)
{
	CLEANUP(free_cleanup) char *library = find_library(err);
	CLEANUP(free_cleanup) char *folder = NULL;
	char **lines;

	if (!library)
		return NULL;
	if (mkdir(dir->calls, 0777) < 0) {
		error_set(err, "%s: the folder cannot be made: %s", dir->calls, strerror(errno));
		return NULL;
	}
	if (asprintf(&folder, CALLS_FOLDER_VARIABLE "=%s", dir->calls) < 0) {
		folder = NULL;
		error_set(err, "out of memory for the environment");
		return NULL;
	}
	lines = preload_lines(library, env, folder, NULL);
	if (!lines)
		error_set(err, "out of memory for the environment");
	return lines;
}

bool instrument_left(const struct rundir *dir)
{
	bool writing;

	return recordings_look(dir->calls, CALLS_FILE_PREFIX, &writing);
}

void instrument_finish(const struct rundir *dir, bool survivors, const volatile int *hurry, struct run *run)
{
	CLEANUP(graph_release) struct graph graph;
	struct error err;
	bool writing;
	int made;

	recordings_look(dir->calls, CALLS_FILE_PREFIX, &writing);
	graph_init(&graph);
	rundir_clear_way(dir->calls_graph);
	made = call_graph_make(dir->calls, dir->calls_graph, hurry, &graph, &err);
	for (size_t i = 0; made == 0 && i < graph.note_count; i++)
		warnings_add(&run->warnings, "%s", graph.notes[i]);
	if (made != 0)
		warnings_add(&run->warnings, "There is no call graph: %s.", err.text);
	/* Those of a graph that could not be made can be tried again: assay recover, assay profile --instrument DIR. */
	if (made < 0 || survivors || writing)
		return;
	if (calls_recording_remove(dir->calls, &err) < 0)
		warnings_add(&run->warnings, "%s.", err.text);
	else
		rmdir(dir->calls);
}
