/* The options by which subcommands pick ranks and regions of a file: --ranks, --include, --exclude. */
#ifndef ASSAY_CMD_REGION_OPTIONS_H
#define ASSAY_CMD_REGION_OPTIONS_H

#include "cmd/options.h"
#include "model/region_query.h"
#include "model/regions.h"

/* A member of the command's own arguments; options_release frees its lists. */
struct region_options {
	const char *ranks;
	struct option_list include, exclude;
};

/* The rows of a command's options, `member` being the region_options in its `struct args`. */
#define REGION_OPTIONS(args, member)                                                                                   \
	{"ranks", 'r', OPTION_TEXT, offsetof(struct args, member.ranks), "LIST", "only these ranks, as in 0-3,8",      \
	 "all"},                                                                                                       \
		{"include",                                                                                            \
		 'i',                                                                                                  \
		 OPTION_LIST,                                                                                          \
		 offsetof(struct args, member.include),                                                                \
		 "REGEX",                                                                                              \
		 "only regions whose name begins like this; may be repeated",                                          \
		 "all"},                                                                                               \
	{                                                                                                              \
		"exclude", 'x', OPTION_LIST, offsetof(struct args, member.exclude), "REGEX",                           \
			"no regions whose name begins like this; may be repeated", "none"                              \
	}

/* Fills *q (initialised). The error names the option. */
int region_options_query(const struct region_options *o, struct region_query *q, struct error *err);

/* Fails where what is written to `path` (NULL: nothing is) would replace the file that it is made from. */
int region_options_keep(const char *option, const char *path, const struct regions *r, struct error *err);

/* Says on stderr that the file has regions and nothing is left of them by what was asked for. */
void region_options_warn_of_nothing(const char *who, const struct region_query *q, const struct regions *r);

/* Says on stderr which ranks were asked for and are not in the file. `who` begins the line: "assay inspect". */
void region_options_warn(const char *who, const struct region_query *q, const struct regions *r);

#endif
