/* assay: finds the command, runs it, and makes sure that its answer was really written. Nothing else exits. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/spell.h"
#include "cmd/command.h"
#include "cmd/help.h"

/* A descriptor 0, 1 or 2 that the caller has closed would go to the next file that is opened, and what is printed would
 * end up in there. It is filled with one that cannot be used in that direction and that a target does not inherit. */
static int fill_standard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		if (open("/dev/null", (fd == 0 ? O_WRONLY : O_RDONLY) | O_CLOEXEC) < 0)
			return -1;
	}
	return 0;
}

static int unknown_option(const char *word)
{
	static const char *const names[] = {"--help", "--version"};
	const char *nearest = spell_nearest(word, names, sizeof names / sizeof *names);
	struct typed typed = typed_show(word, strlen(word));

	if (nearest)
		fprintf(stderr, "assay: unknown option '%s'; did you mean '%s'?\n", typed.text, nearest);
	else
		fprintf(stderr, "assay: unknown option '%s'; a command comes first, 'assay --help' lists them\n",
			typed.text);
	return EXIT_USAGE;
}

static int dispatch(int argc, char **argv)
{
	const struct command *cmd;

	if (argc < 2) {
		fprintf(stderr, "Usage: assay COMMAND [options] ...; 'assay --help' lists the commands\n");
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		puts("assay " ASSAY_VERSION);
		return EXIT_DONE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return cmd_help.run(argc - 1, argv + 1);
	if (argv[1][0] == '-')
		return unknown_option(argv[1]);
	cmd = command_find(argv[1], NULL);
	return cmd ? cmd->run(argc - 1, argv + 1) : command_unknown("assay", argv[1]);
}

/* Only here does a full disk or a closed standard output show. */
static int finish_output(void)
{
	int failed = ferror(stdout);

	errno = 0;
	if (fflush(stdout) != 0 || failed || (close(STDOUT_FILENO) < 0 && errno != EBADF)) {
		fprintf(stderr, "assay: the output cannot be written: %s\n",
			errno ? strerror(errno) : "an earlier write failed");
		return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	/* Most answers fit, so that the one write at the end tells what is wrong with it. */
	static char answer[65536];
	int status;

	if (fill_standard_descriptors() < 0) {
		fprintf(stderr, "assay: /dev/null cannot stand in for a closed standard descriptor: %s\n",
			strerror(errno));
		return EXIT_TROUBLE;
	}
	if (!isatty(STDOUT_FILENO))
		setvbuf(stdout, answer, _IOFBF, sizeof answer);
	status = dispatch(argc, argv);
	if (finish_output() < 0 && status == EXIT_DONE)
		status = EXIT_TROUBLE;
	return status;
}
