/* assay help: the overview, a command's help, and both as man pages. */
#include "cmd/help.h"

#include <stddef.h>
#include <string.h>

#include "cmd/paragraph.h"

const char help_purpose[] =
	"Records what a command does to the machine while it runs, and says what it cost, phase by phase.";

const struct help_status help_statuses[] = {
	{EXIT_DONE, "done, and nothing wrong"},
	{EXIT_DIFFERENT, "the answer is \"regression\", \"over budget\" or \"not equal\""},
	{EXIT_USAGE, "bad usage or a bad input file"},
	{EXIT_TROUBLE, "assay itself could not do its work"},
	{EXIT_UNDECIDED, "undecided, where that was asked to count"},
	{EXIT_DONE, NULL},
};

const char help_status_note[] = "run passes the target's own status through: 128+N for signal N, 124 after a timeout, "
				"127 or 126 where the command is not there or cannot be executed.";

void help_overview(FILE *out)
{
	size_t column = 0;

	for (size_t i = 0; i < command_count; i++)
		if (strlen(commands[i]->name) > column)
			column = strlen(commands[i]->name);
	column += 4;
	paragraph_print(out, help_purpose, 0, 0);
	fprintf(out, "\nUsage: assay COMMAND [options] ...\n       assay --help | --version\n\nCommands:\n");
	for (size_t i = 0; i < command_count; i++) {
		fprintf(out, "  %-*s", (int)column - 2, commands[i]->name);
		paragraph_print(out, commands[i]->summary, column, column);
	}
	fprintf(out, "\n'assay help COMMAND' shows a command's options, with examples.\n\nExit status:\n");
	for (const struct help_status *s = help_statuses; s->meaning; s++)
		fprintf(out, "  %d   %s\n", (int)s->status, s->meaning);
	paragraph_print(out, help_status_note, 0, 0);
	fprintf(out, "\nDocumentation: 'man assay', 'man assay-run', and the pages in\n%s.\n", ASSAY_DOC_DIR);
}

struct help_arguments {
	bool man;
};

static int run(int argc, char **argv)
{
	struct help_arguments args = {0};
	const struct command *cmd;
	struct error err;
	int rest, got = options_parse(&cmd_help, argc, argv, &args, &rest, &err);

	if (got != 0) {
		if (got < 0)
			fprintf(stderr, "assay help: %s\n", err.text);
		return got < 0 ? EXIT_USAGE : EXIT_DONE;
	}
	if (argc - rest > 1) {
		fprintf(stderr, "assay help: one command at a time; '%s' is one too many\n",
			typed_show(argv[rest + 1], strlen(argv[rest + 1])).text);
		return EXIT_USAGE;
	}
	if (rest == argc) {
		(args.man ? man_overview : help_overview)(stdout);
		return EXIT_DONE;
	}
	cmd = command_find(argv[rest], NULL);
	if (!cmd)
		return command_unknown("assay help", argv[rest]);
	(args.man ? man_command : options_help)(cmd, stdout);
	return EXIT_DONE;
}

static const struct option options[] = {
	{"man", 0, OPTION_FLAG, offsetof(struct help_arguments, man), NULL, "print the man page (roff) instead"},
	OPTIONS_END,
};

const struct command cmd_help = {
	.name = "help",
	.summary = "this overview, or the options of one command with examples",
	.usage = "[--man] [COMMAND]",
	.description = "Shows what a command does, its options with their defaults, and examples. Without\n"
		       "a command: all commands, and what the exit status means.",
	.options = options,
	.examples = "# the options of run\nassay help run\n"
		    "# its man page, where none is installed\nassay help --man run | man -l -\n",
	.run = run,
};
