/* assay noise: the noise floors that a null matrix (the same build on both sides) has shown. */
#include "cmd/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/table.h"
#include "base/utf8.h"
#include "cmd/notes.h"
#include "store/noisefile.h"

#define LABEL_COLUMNS 50

struct noise_args {
	const char *out;
	bool table, json;
};

static const struct option options[] = {
	{"out", 'o', OPTION_TEXT, offsetof(struct noise_args, out), "FILE", "write them to a file", "standard output"},
	{"table", 't', OPTION_FLAG, offsetof(struct noise_args, table), NULL, "print a table for people instead"},
	{"json", 0, OPTION_FLAG, offsetof(struct noise_args, json), NULL, "print JSON, which is the default"},
	OPTIONS_END,
};

static int trouble(const struct error *err, int status)
{
	fprintf(stderr, "assay noise: %s\n", err->text);
	return status;
}

static void label_cell(struct table *t, const char *text)
{
	CLEANUP(buf_release) struct buf shown;

	buf_init(&shown);
	utf8_append_line(&shown, text, LABEL_COLUMNS);
	table_cell(t, "%s", shown.text);
}

static void print_table(const json_t *noise)
{
	CLEANUP(table_release) struct table t;
	CLEANUP(buf_release) struct buf out;
	const char *label, *metric;
	json_t *floors, *floor;

	table_init(&t, 3);
	buf_init(&out);
	table_cell(&t, "case");
	table_cell(&t, "metric");
	table_cell(&t, "floor");
	json_object_foreach((json_t *)noise, label, floors) {
		json_object_foreach(floors, metric, floor) {
			if (!json_is_number(floor))
				continue;
			label_cell(&t, label);
			label_cell(&t, metric);
			table_cell(&t, "%.3f%%", json_number_value(floor) * 100);
		}
	}
	table_print(&t, "llr", "", &out);
	fwrite(out.text, 1, out.length, stdout);
}

static int noise(const struct noise_args *args, const char *path)
{
	CLEANUP(json_cleanup) json_t *matrix = NULL;
	CLEANUP(json_cleanup) json_t *floors = NULL;
	CLEANUP(warnings_release) struct warnings notes;
	CLEANUP(free_cleanup) char *text = NULL;
	struct error err;

	warnings_init(&notes);
	matrix = json_read_file(path, &err);
	floors = matrix ? noisefile_from_matrix(matrix, path, &notes, &err) : NULL;
	if (!floors)
		return trouble(&err, EXIT_USAGE);
	notes_print("assay noise", &notes);
	if (args->out && json_write_file(args->out, floors, &err) < 0)
		return trouble(&err, EXIT_TROUBLE);
	if (args->table) {
		print_table(floors);
	} else if (!args->out || args->json) {
		text = json_print(floors);
		if (!text) {
			error_set(&err, "out of memory for the answer");
			return trouble(&err, EXIT_TROUBLE);
		}
		puts(text);
	}
	return EXIT_DONE;
}

static int run_noise(int argc, char **argv)
{
	struct noise_args args = {0};
	struct error err;
	int rest, status = options_parse(&cmd_noise, argc, argv, &args, &rest, &err);

	if (status > 0)
		return EXIT_DONE;
	if (status == 0 && argc - rest != 1)
		status = error_set(&err, "expected one matrix.json; usage: assay noise [options] MATRIX.json");
	if (status == 0 && args.table && args.json)
		status = error_set(&err, "options '--table' and '--json' exclude each other");
	return status < 0 ? trouble(&err, EXIT_USAGE) : noise(&args, argv[rest]);
}

const struct command cmd_noise = {
	.name = "noise",
	.summary = "noise floors from a matrix with the same build on both sides",
	.usage = "[options] MATRIX.json",
	.description =
		"Takes the matrix.json of a null comparison, in which both sides were the same\n"
		"build, and prints {LABEL: {METRIC: FLOOR}}: the whole spread of each metric\n"
		"over both sides, relative to its mean. `assay diff` and `assay matrix` take it\n"
		"with --noise: a difference below it does not count.\n"
		"\n"
		"A case whose own verdict found a difference is marked \"untrusted\": something\n"
		"else than the build differed, or it was chance. The exit status is 0 all the\n"
		"same.",
	.options = options,
	.examples =
		"# measure the noise of this machine, then compare above it\n"
		"assay matrix cases.json --a one=build --b two=build -o null\n"
		"assay noise null/matrix.json -o noise.json\n"
		"# to look at\n"
		"assay noise --table null/matrix.json\n",
	.run = run_noise,
	.mixed = true,
};
