/* assay tree: who called whom, and where the time went, of whatever profile there is. */
#include "cmd/command.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/replace.h"
#include "base/spell.h"
#include "base/utf8.h"
#include "cmd/notes.h"
#include "cmd/terminal.h"
#include "graph/reference.h"
#include "graph/tree.h"
#include "record/graph_input.h"

#define MIN_SHARE 1 /* percent */
#define REFERENCE_WIDTH 60
#define COLUMNS_MOST 200
#define NAMED_MOST 4         /* functions that an error names */
#define NAME_COLUMNS 60
#define SPELLED_MOST 20000   /* functions whose names are compared with one that is not there */
#define NOT_GIVEN (-1)

struct tree_args {
	const char *format, *sort, *style, *root, *event, *out;
	struct option_list clean;
	double width, depth, min_share;
	bool all, json, fold_recursion, regions;
};

#define AT(member) offsetof(struct tree_args, member)

static const struct option options[] = {
	{"format", 'f', OPTION_CHOICE, AT(format), "FORMAT", "what to print", "text", "text|json|rows|csv|dot|flat"},
	{"json", 0, OPTION_FLAG, AT(json), NULL, "the same as --format json"},
	{"out", 'o', OPTION_TEXT, AT(out), "FILE", "write it to a file", "standard output"},
	{"sort", 's', OPTION_CHOICE, AT(sort), "KEY", "the order of calls below their caller",
	 "cumulative; flat: time; --style reference: line", "line|time|cumulative|calls"},
	{"min-share", 'm', OPTION_NUMBER, AT(min_share), "PCT",
	 "sum up what takes less than this part of the whole; 0: show all", "1", NULL, 0, 100},
	{"depth", 'd', OPTION_NUMBER, AT(depth), "N", "at most N levels of calls", "any", NULL, 1, 1e9},
	{"root", 'r', OPTION_TEXT, AT(root), "FUNCTION",
	 "begin there: a name, a pattern (parse_*), or file:line:function", "where the program begins"},
	{"all", 'a', OPTION_FLAG, AT(all), NULL,
	 "show small built-in functions of Python, too (at most 10 calls and 0.1 ms)"},
	{"clean", 'c', OPTION_LIST, AT(clean), "RULE",
	 "rename files: basename, or OLD=NEW for a part of the path; may be repeated", NULL},
	{"width", 'w', OPTION_NUMBER, AT(width), "N", "columns of a name with its tree lines",
	 "as fits; --style reference: 60", NULL, 0, 100000},
	{"event", 'e', OPTION_TEXT, AT(event), "NAME", "of files with several costs (callgrind): which", "the first"},
	{"fold-recursion", 0, OPTION_FLAG, AT(fold_recursion), NULL, "callgrind's f'2 is f"},
	{"regions", 0, OPTION_FLAG, AT(regions), NULL, "of a run that has both: its regions, not its samples"},
	{"style", 0, OPTION_CHOICE, AT(style), "STYLE",
	 "reference: as ProfileNode.to_text, to_json, as_dict and profile2df print it", "tree", "reference|tree"},
	OPTIONS_END,
};

static int trouble(const struct error *err, int status)
{
	fprintf(stderr, "assay tree: %s\n", err->text);
	return status;
}

static bool is(const char *given, const char *word)
{
	return given && strcmp(given, word) == 0;
}

static bool is_reference(const struct tree_args *a)
{
	return is(a->style, "reference");
}

static int check(struct tree_args *a, struct error *err)
{
	if (a->json && a->format && !is(a->format, "json"))
		return error_set(err, "option '--json' is --format json, and cannot stand beside --format %s",
				 a->format);
	if (a->json)
		a->format = "json";
	if ((is(a->format, "dot") || is(a->format, "flat")) && (a->root || a->depth != NOT_GIVEN))
		return error_set(err, "option '%s' is for trees: --format %s shows the functions of all of them",
				 a->root ? "--root" : "--depth", a->format);
	if (!is_reference(a))
		return 0;
	if (is(a->sort, "calls"))
		return error_set(err, "option '--sort': 'calls' is no order of --style reference, which has line, time "
				      "and cumulative");
	if (is(a->format, "csv") || is(a->format, "dot"))
		return error_set(err,
				 "option '--format': '%s' is no format of --style reference, which has text, json, "
				 "rows and flat",
				 a->format);
	if (a->depth != NOT_GIVEN || a->min_share != NOT_GIVEN)
		return error_set(err,
				 "option '%s' is for --style tree: --style reference shows what the reference shows",
				 a->depth != NOT_GIVEN ? "--depth" : "--min-share");
	return 0;
}

static enum graph_sort sort_of(const struct tree_args *a)
{
	if (a->sort)
		return is(a->sort, "line")   ? GRAPH_BY_LINE
		       : is(a->sort, "time") ? GRAPH_BY_TIME
		       : is(a->sort, "calls") ? GRAPH_BY_CALLS
					      : GRAPH_BY_CUMULATIVE;
	return is_reference(a) ? GRAPH_BY_LINE : is(a->format, "flat") ? GRAPH_BY_TIME : GRAPH_BY_CUMULATIVE;
}

static int no_root(const struct graph *g, const char *text, struct error *err)
{
	size_t count = g->node_count < SPELLED_MOST ? g->node_count : SPELLED_MOST;
	CLEANUP(free_cleanup) const char **names = calloc(count + 1, sizeof *names);
	struct typed typed = typed_show(text, strlen(text));
	const char *nearest;

	if (!names)
		return error_set(err, "option '--root': out of memory");
	for (size_t i = 0; i < count; i++)
		names[i] = g->nodes[i].name;
	nearest = spell_nearest(text, names, count);
	if (nearest)
		return error_set(err, "option '--root': there is no function '%s'; did you mean '%s'?", typed.text,
				 typed_show(nearest, strlen(nearest)).text);
	return error_set(err, "option '--root': there is no function '%s' (--format flat --min-share 0 lists all)",
			 typed.text);
}

/* One name may stand for several functions: then they are named, for the user to choose. */
static int find_root(const struct graph *g, const char *text, uint32_t *ret, struct error *err)
{
	uint32_t found[NAMED_MOST];
	size_t count = graph_find(g, text, found, NAMED_MOST);
	CLEANUP(buf_release) struct buf names;

	buf_init(&names);
	if (count == 0)
		return no_root(g, text, err);
	if (count == 1) {
		*ret = found[0];
		return 0;
	}
	for (size_t i = 0; i < count && i < NAMED_MOST; i++) {
		CLEANUP(free_cleanup) char *key = graph_key(&g->nodes[found[i]]);

		buf_puts(&names, i ? ", " : "");
		utf8_append_line(&names, key ? key : "", NAME_COLUMNS);
	}
	return error_set(err, "option '--root': '%s' is %zu functions (%s%s); name one of them so",
			 typed_show(text, strlen(text)).text, count, names.text, count > NAMED_MOST ? ", ..." : "");
}

/* Returns the exit status. */
static int put_reference(const struct tree_args *a, const struct graph *g, uint32_t root, FILE *stream,
			 struct buf *out, struct error *err)
{
	const struct graph_rows_options o = {.start = root,
					     .sort = sort_of(a),
					     .keep = a->all ? NULL : graph_filter_reference,
					     .stream = stream};
	int width = a->width == NOT_GIVEN ? REFERENCE_WIDTH : (int)a->width, got;

	if (is(a->format, "json"))
		got = graph_reference_json(g, &o, out, err);
	else if (is(a->format, "rows"))
		got = graph_reference_rows(g, &o, out, err);
	else if (is(a->format, "flat"))
		got = graph_reference_flat(g, stream, out, err);
	else
		got = graph_reference_text(g, &o, width, out, err);
	buf_putc(out, '\n');
	return got == 0 ? EXIT_DONE : ferror(stream) || out->failed ? EXIT_TROUBLE : EXIT_USAGE;
}

static int put_tree(const struct tree_args *a, const struct graph *g, uint32_t root, struct buf *out, struct error *err)
{
	const struct graph_tree_options o = {
		.root = root,
		.sort = sort_of(a),
		.depth = a->depth == NOT_GIVEN ? 0 : (unsigned)a->depth,
		.min_share = (a->min_share == NOT_GIVEN ? MIN_SHARE : a->min_share) / 100,
		.keep = a->all ? NULL : graph_filter_reference,
		.columns = a->out ? 0 : (unsigned)terminal_columns_within(STDOUT_FILENO, COLUMNS_MOST),
		.name_width = a->width == NOT_GIVEN ? 0 : (unsigned)a->width,
		.colour = !a->out && terminal_has_colour(STDOUT_FILENO),
	};
	CLEANUP(graph_tree_release) struct graph_tree t = {0};
	int got;

	if (is(a->format, "dot") || is(a->format, "flat")) {
		got = is(a->format, "dot") ? graph_dot(g, &o, out) : graph_flat_text(g, &o, out);
	} else {
		if (graph_tree_build(g, &o, &t, err) < 0)
			return EXIT_TROUBLE;
		got = is(a->format, "json")   ? graph_tree_json(g, &t, out)
		      : is(a->format, "rows") ? graph_tree_rows(g, &t, out)
		      : is(a->format, "csv")  ? graph_tree_csv(g, &t, out)
					      : graph_tree_text(g, &t, &o, out);
	}
	return got < 0 ? (error_set(err, "out of memory for the answer"), EXIT_TROUBLE) : EXIT_DONE;
}

static int put_answer(const struct tree_args *a, const char *path, const struct graph *g, uint32_t root)
{
	CLEANUP(buf_release) struct buf out;
	CLEANUP(replacement_release) struct replacement file;
	FILE *stream = stdout;
	struct error err;
	int status;

	buf_init(&out);
	replacement_init(&file);
	if (a->out) {
		if (replacement_open(&file, a->out, &err) < 0)
			return trouble(&err, EXIT_TROUBLE);
		stream = file.out;
	}
	status = is_reference(a) ? put_reference(a, g, root, stream, &out, &err) : put_tree(a, g, root, &out, &err);
	if (status == EXIT_DONE && out.failed) {
		error_set(&err, "out of memory for the answer");
		status = EXIT_TROUBLE;
	}
	if (status != EXIT_DONE) {
		error_prefix(&err, "%s", path);
		return trouble(&err, status);
	}
	fwrite(out.text, 1, out.length, stream); /* of standard output main() looks whether it was really written */
	return a->out && replacement_commit(&file, &err) < 0 ? trouble(&err, EXIT_TROUBLE) : EXIT_DONE;
}

/* The flat rows of the reference are those of the file, also where two become one by their new names. */
static int rename_files(const struct tree_args *a, struct graph *g, struct error *err)
{
	if (is_reference(a) && is(a->format, "flat"))
		return graph_rename(g, a->clean.items, a->clean.count, err);
	return graph_clean(g, a->clean.items, a->clean.count, is_reference(a), err);
}

static int show(const struct tree_args *a, const char *path)
{
	const struct graph_input input = {
		.path = path, .event = a->event, .fold_recursion = a->fold_recursion, .regions = a->regions};
	CLEANUP(graph_release) struct graph g;
	CLEANUP(warnings_release) struct warnings warnings;
	uint32_t root = GRAPH_NONE;
	struct error err;

	graph_init(&g);
	warnings_init(&warnings);
	if (graph_input_read(&input, &g, &warnings, &err) < 0)
		return trouble(&err, EXIT_USAGE);
	if (a->clean.count && rename_files(a, &g, &err) < 0) {
		error_prefix(&err, "option '--clean'");
		return trouble(&err, EXIT_USAGE);
	}
	if (a->root && find_root(&g, a->root, &root, &err) < 0)
		return trouble(&err, EXIT_USAGE);
	notes_print("assay tree", &warnings);
	notes_print_texts("assay tree", g.notes, g.note_count);
	return put_answer(a, path, &g, root);
}

static int run(int argc, char **argv)
{
	struct tree_args args = {.width = NOT_GIVEN, .depth = NOT_GIVEN, .min_share = NOT_GIVEN};
	struct error err;
	int rest, status = options_parse(&cmd_tree, argc, argv, &args, &rest, &err);

	if (status > 0)
		return EXIT_DONE;
	if (status == 0 && argc - rest != 1)
		status = error_set(&err, "expected one profile or run directory; usage: assay tree [options] FILE|DIR");
	if (status == 0)
		status = check(&args, &err);
	status = status < 0 ? trouble(&err, EXIT_USAGE) : show(&args, argv[rest]);
	options_release(&cmd_tree, &args);
	return status;
}

const struct command cmd_tree = {
	.name = "tree",
	.summary = "who called whom, and where the time went, of any profile",
	.usage = "[options] FILE|DIR",
	.description =
		"Shows a profile as a tree of calls: each function below its caller, with its\n"
		"share of the whole, its time with and without what it called, and its calls.\n"
		"FILE is what Python's cProfile, callgrind, `perf script | stackcollapse`,\n"
		"speedscope or assay wrote (its content tells which; - is standard input); DIR\n"
		"is a run that was profiled or that has regions.\n"
		"\n"
		"Where a file holds stacks, all figures are exact. Where it only holds who\n"
		"called whom (cProfile, callgrind), what lies below a function with several\n"
		"callers is divided among them, and marked with ~.",
	.options = options,
	.examples =
		"# where a Python program spends its time\n"
		"python3 -m cProfile -o out.prof script.py && assay tree out.prof\n"
		"# one function and what it calls, down to the last call\n"
		"assay tree out.prof --root load_all --min-share 0\n"
		"# a table for pandas.read_csv\n"
		"assay tree callgrind.out.123 --format csv -o calls.csv\n"
		"# a picture\n"
		"assay tree out.prof --format dot | dot -Tsvg -o calls.svg\n",
	.run = run,
	.mixed = true,
};
