#include "cmd/profile_instrument.h"

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "cmd/command.h"
#include "cmd/terminal.h"
#include "graph/graph_file.h"
#include "graph/tree.h"
#include "record/call_graph.h"
#include "store/rundir.h"
#include "wire/graph.h"

#define GRAPH_BYTES_MAX ((size_t)1 << 34)
#define SHARE_MIN 0.005 /* of the whole; smaller ones are summed up */

int profile_instrument_check(const struct profile_args *a, bool live, struct error *err)
{
	const struct {
		const char *name;
		bool given;
	} sampled[] = {
		{"by", strcmp(a->by, "function") != 0},
		{"group", a->group},
		{"top", a->top >= 0},
		{"include", a->include.count > 0},
		{"exclude", a->exclude.count > 0},
		{"focus", a->focus},
		{"hz", a->hz >= 0},
		{"cpu-profile", a->run.cpu_profile},
		{"sampler", a->run.sampler},
	};
	struct run_options run = a->run;
	const char *given;

	for (size_t i = 0; i < sizeof sampled / sizeof *sampled; i++)
		if (sampled[i].given)
			return error_set(err, "option '--%s' is about CPU samples, and --instrument takes none; assay "
					      "tree shows a graph of calls in other ways",
					 sampled[i].name);
	run.quiet = false;
	given = run_options_given(&run);
	if (!live && given)
		return error_set(err, "option '--%s' is for a command that is run: assay profile --instrument "
				      "[options] -- COMMAND",
				 given);
	return 0;
}

/* The tree as text for that descriptor, or as JSON for fd -1. */
static int make_tree(const struct graph *g, int fd, struct buf *out, struct error *err)
{
	const struct graph_tree_options options = {
		.root = GRAPH_NONE,
		.sort = GRAPH_BY_CUMULATIVE,
		.min_share = fd < 0 ? 0 : SHARE_MIN,
		.columns = fd < 0 ? 0 : (unsigned)terminal_columns_within(fd, PROFILE_COLUMNS_MAX),
		.colour = fd >= 0 && terminal_has_colour(fd),
	};
	CLEANUP(graph_tree_release) struct graph_tree tree = {0};

	if (graph_tree_build(g, &options, &tree, err) < 0)
		return -1;
	if ((fd < 0 ? graph_tree_json(g, &tree, out) : graph_tree_text(g, &tree, &options, out)) < 0)
		return error_set(err, "out of memory for the tree");
	if (out->length && out->text[out->length - 1] != '\n')
		buf_putc(out, '\n');
	return out->failed ? error_set(err, "out of memory for the tree") : 0;
}

static int print_tree(const struct graph *g, FILE *out, int fd, struct error *err)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	if (make_tree(g, fd, &text, err) < 0)
		return -1;
	fwrite(text.text, 1, text.length, out);
	return 0;
}

/* On standard output, or to the file that --json=FILE names. `begun`: something stands on the present line. */
static int put_json(const struct profile_args *a, const struct graph *g, bool begun, struct error *err)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	if (make_tree(g, -1, &text, err) < 0)
		return -1;
	if (*a->json)
		return fs_write_file(a->json, text.text, text.length, err);
	printf("%s%s", begun ? "\n" : "", text.text); /* whether it arrives, main() finds out */
	return 0;
}

static int read_graph(const char *path, struct graph *ret, struct error *err)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	return fs_read_file(path, GRAPH_BYTES_MAX, &text, err) < 0 ||
			       graph_file_read(text.text, text.length, path, ret, err) < 0
		       ? -1
		       : 0;
}

static int answer_graph(const struct profile_args *a, const struct record_result *result, struct error *err)
{
	CLEANUP(graph_release) struct graph graph;

	graph_init(&graph);
	if (!result->kept || !fs_exists(result->dir.calls_graph))
		return error_set(err, "there is no call graph: the warnings above or in run.json say why");
	if (read_graph(result->dir.calls_graph, &graph, err) < 0)
		return -1;
	if (a->json && put_json(a, &graph, !result->ends_with_newline, err) < 0)
		return -1;
	if (a->run.quiet)
		return 0;
	fputc('\n', stderr);
	return print_tree(&graph, stderr, STDERR_FILENO, err);
}

static void answer(void *context, struct record_result *result)
{
	const struct profile_args *a = context;
	struct error err;

	if (!a->run.quiet)
		run_options_put_summary(result);
	if (answer_graph(a, result, &err) < 0)
		fprintf(stderr, "assay profile: %s\n", err.text);
}

int profile_instrument_run(struct profile_args *a, char **command)
{
	return run_options_execute(&a->run, 0, "profile", command, answer, a);
}

/* Where the graph is, and where the recordings are that it can be made of. */
struct graph_place {
	char *folder, *path; /* owned; folder NULL: the graph is made */
};

static void graph_place_release(struct graph_place *p)
{
	free_cleanup(&p->folder);
	free_cleanup(&p->path);
}

static int find_graph(const char *path, struct graph_place *ret, struct error *err)
{
	CLEANUP(rundir_release) struct rundir dir;

	rundir_init(&dir);
	if (rundir_open(&dir, path, err) < 0)
		return -1;
	if (!fs_exists(dir.calls_graph)) /* of a run directory, or of the folder itself */
		ret->folder = fs_is_dir(dir.calls) ? fs_absolute(dir.calls) : fs_absolute(dir.path);
	ret->path = fs_absolute(dir.calls_graph);
	return ret->path ? 0 : error_set(err, "%s: out of memory", path);
}

int profile_instrument_show(const struct profile_args *a, const char *path, struct error *err)
{
	CLEANUP(graph_place_release) struct graph_place place = {0};
	CLEANUP(graph_release) struct graph graph;
	int got;

	graph_init(&graph);
	if (find_graph(path, &place, err) < 0)
		return -1;
	got = place.folder ? call_graph_make(place.folder, place.path, NULL, &graph, err)
			   : read_graph(place.path, &graph, err);
	if (got != 0)
		return -1;
	if (a->json)
		return put_json(a, &graph, false, err) < 0 ? -1 : EXIT_DONE;
	if (a->run.quiet)
		return EXIT_DONE;
	for (size_t i = 0; i < graph.note_count; i++)
		fprintf(stderr, "assay profile: %s\n", graph.notes[i]);
	return print_tree(&graph, stdout, STDOUT_FILENO, err) < 0 ? -1 : EXIT_DONE;
}
