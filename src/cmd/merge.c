/* assay merge: one file of regions from what libassay recorded, of all ranks. */
#include "cmd/command.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cmd/interrupt.h"
#include "cmd/notes.h"
#include "store/region_merge.h"

#define DEFAULT_NAME "regions.h5"
#define PATH_COLUMNS 1000
#define INTERVAL_NS (250 * NS_PER_MS)

struct merge_args {
	const char *out;
	bool strict, no_ids, quiet, json;
};

#define AT(member) offsetof(struct merge_args, member)

static const struct option options[] = {
	{"out", 'o', OPTION_TEXT, AT(out), "FILE", "where the result goes", "DIR/" DEFAULT_NAME},
	{"strict", 0, OPTION_FLAG, AT(strict), NULL, "exit 1 where a rank left no recording", NULL},
	{"no-ids", 0, OPTION_FLAG, AT(no_ids), NULL, "leave out which call lies in which: a smaller file", NULL},
	{"quiet", 'q', OPTION_FLAG, AT(quiet), NULL, "print errors alone", NULL},
	{"json", 0, OPTION_FLAG, AT(json), NULL, "print what was merged as JSON", NULL},
	OPTIONS_END,
};

static int trouble(const struct error *err, int status)
{
	fprintf(stderr, "assay merge: %s\n", err->text);
	return status;
}

struct progress {
	int64_t shown; /* ns; 0: not yet */
	bool there;    /* a line is on the terminal */
};

static void show_progress(void *context, uint64_t done, uint64_t all)
{
	struct progress *p = context;
	int64_t now = clock_mono_ns();

	if (p->shown == 0)
		p->shown = now; /* what takes no time needs no line */
	if (all == 0 || now - p->shown < INTERVAL_NS)
		return;
	p->shown = now;
	p->there = true;
	fprintf(stderr, "\r\033[Kmerging: %.0f%% of %s calls", 100 * (double)done / (double)all,
		units_count((double)all / 3).text);
	fflush(stderr);
}

static int print_json(const char *path, const struct region_merge_result *r)
{
	CLEANUP(json_cleanup) json_t *root = json_object();
	CLEANUP(free_cleanup) char *text = NULL;
	json_t *notes = json_array();

	json_put_text(root, "file", path);
	json_put_integer(root, "processes", (json_int_t)r->processes);
	json_put_integer(root, "calls", (json_int_t)r->calls);
	json_put_integer(root, "dropped", (json_int_t)r->dropped);
	json_put_integer(root, "ranks", r->ranks);
	json_object_set_new(root, "expected_ranks", r->expected_ranks ? json_integer(r->expected_ranks) : json_null());
	json_object_set_new(root, "missing", r->missing ? json_string(r->missing) : json_null());
	for (size_t i = 0; i < r->note_count; i++)
		json_array_append_new(notes, json_text(r->notes[i], strlen(r->notes[i])));
	json_object_set_new(root, "notes", notes);
	text = json_print(root);
	if (!text) {
		fprintf(stderr, "assay merge: --json: out of memory\n");
		return -1;
	}
	puts(text);
	return 0;
}

static void print_text(const char *path, const struct region_merge_result *r)
{
	CLEANUP(buf_release) struct buf line;

	buf_init(&line);
	utf8_append_line(&line, path, PATH_COLUMNS);
	buf_printf(&line, ": %s call%s of %s rank%s", units_count((double)r->calls).text, r->calls == 1 ? "" : "s",
		   units_count((double)r->ranks).text, r->ranks == 1 ? "" : "s");
	if (r->expected_ranks > r->ranks)
		buf_printf(&line, " of %s", units_count((double)r->expected_ranks).text);
	if (r->processes != r->ranks)
		buf_printf(&line, ", %s process%s", units_count((double)r->processes).text,
			   r->processes == 1 ? "" : "es");
	if (r->dropped)
		buf_printf(&line, "; %s call%s found no room and %s lost", units_count((double)r->dropped).text,
			   r->dropped == 1 ? "" : "s", r->dropped == 1 ? "is" : "are");
	puts(line.text);
}

static int merge(const struct merge_args *a, const char *const *folders, size_t count, const char *out)
{
	CLEANUP(region_merge_result_release) struct region_merge_result result;
	struct progress progress = {0};
	struct region_merge_options o = {
		.folders = folders,
		.folder_count = count,
		.out = out,
		.leave_out_ids = a->no_ids,
		.stop = &interrupted_by,
		.progress = !a->quiet && isatty(STDERR_FILENO) ? show_progress : NULL,
		.context = &progress,
	};
	struct error err;
	int got;

	region_merge_result_init(&result);
	interrupt_catch(SA_RESTART);
	signal(SIGXFSZ, SIG_IGN); /* a limit on the size of files is an error like a full disk */
	got = region_merge(&o, &result, &err);
	if (progress.there)
		fputs("\r\033[K", stderr);
	if (got < 0 && interrupted_by) {
		fprintf(stderr, "assay merge: interrupted\n");
		return 128 + interrupted_by;
	}
	if (got < 0)
		return trouble(&err, EXIT_TROUBLE);
	if (got > 0) {
		error_set(&err, "%s%s: no recording of regions is there", folders[0], count > 1 ? ", ..." : "");
		return trouble(&err, EXIT_USAGE);
	}
	if (a->json && print_json(out, &result) < 0)
		return EXIT_TROUBLE;
	if (!a->json && !a->quiet)
		print_text(out, &result);
	if (!a->quiet)
		notes_print_texts("assay merge", result.notes, result.note_count);
	return a->strict && result.missing ? EXIT_DIFFERENT : EXIT_DONE;
}

static int run_merge(int argc, char **argv)
{
	struct merge_args args = {0};
	CLEANUP(free_cleanup) char *fallback = NULL;
	struct error err;
	int rest, status = options_parse(&cmd_merge, argc, argv, &args, &rest, &err);

	if (status > 0)
		return EXIT_DONE;
	if (status == 0 && rest == argc)
		status = error_set(&err, "expected a folder with recordings; usage: assay merge [options] DIR...");
	for (int i = rest; status == 0 && i < argc; i++)
		if (!fs_is_dir(argv[i]))
			status = error_set(&err, "%s: no such folder", argv[i]);
	if (status < 0)
		return trouble(&err, EXIT_USAGE);
	fallback = fs_join(argv[rest], DEFAULT_NAME);
	if (!fallback) {
		error_set(&err, "%s: out of memory", argv[rest]);
		return trouble(&err, EXIT_TROUBLE);
	}
	return merge(&args, (const char *const *)argv + rest, (size_t)(argc - rest), args.out ? args.out : fallback);
}

const struct command cmd_merge = {
	.name = "merge",
	.summary = "one file of regions from all ranks' recordings",
	.usage = "[options] DIR...",
	.description =
		"Puts together what libassay recorded in DIR: of all processes, threads and\n"
		"ranks, on the clock of rank 0, with the parent and the exclusive time of each\n"
		"call. Looks in DIR, DIR/segments/regions, and in the folders DIR/rank-*\n"
		"likewise. Several DIRs are one job. Recordings of programs that were killed, or\n"
		"still run, are read as far as they go; the recordings stay as they are.\n"
		"\n"
		"`assay run` and libassay-mpi do this at the end of a run by themselves.",
	.options = options,
	.examples =
		"# after mpirun -x ASSAY_DIR=$PWD/rec ./app\n"
		"assay merge rec -o app.h5 && assay inspect app.h5\n"
		"# one folder from each machine; fail where a rank is missing\n"
		"assay merge --strict node1/rec node2/rec -o app.h5\n",
	.run = run_merge,
	.mixed = true,
};
