#include "cmd/command.h"

#include <stdio.h>
#include <string.h>

#include "base/spell.h"

const struct command *const commands[] = {
#define COMMAND(name) &cmd_##name,
#include "cmd/list.def"
#undef COMMAND
};
const size_t command_count = sizeof commands / sizeof *commands;

const struct command *command_find(const char *name, const char **ret_nearest)
{
	static const char *const names[] = {
#define COMMAND(word) #word,
#include "cmd/list.def"
#undef COMMAND
	};

	for (size_t i = 0; i < command_count; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	if (ret_nearest)
		*ret_nearest = spell_nearest(name, names, command_count);
	return NULL;
}

int command_unknown(const char *who, const char *typed)
{
	struct typed shown = typed_show(typed, strlen(typed));
	const char *nearest;

	command_find(typed, &nearest);
	if (nearest)
		fprintf(stderr, "%s: unknown command '%s'; did you mean '%s'?\n", who, shown.text, nearest);
	else
		fprintf(stderr, "%s: unknown command '%s'; 'assay --help' lists them\n", who, shown.text);
	return EXIT_USAGE;
}
