#include "cmd/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/spell.h"
#include "cmd/command.h"
#include "cmd/paragraph.h"

#define NAMES_MAX 64
#define HELP_COLUMN_MAX 30 /* a longer option has its help on the next line */

const struct option options_help_row = {.name = "help", .letter = 'h', .help = "show this help"};

struct typed typed_show(const char *text, size_t length)
{
	struct typed t;
	size_t kept = length < TYPED_MAX ? length : TYPED_MAX;

	for (size_t i = 0; i < kept; i++)
		t.text[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i];
	memcpy(t.text + kept, kept < length ? "..." : "", kept < length ? 4 : 1);
	return t;
}

static const struct option *find_name(const struct option *options, const char *name, size_t length)
{
	for (const struct option *o = options; o->name; o++)
		if (strlen(o->name) == length && strncmp(o->name, name, length) == 0)
			return o;
	return length == 4 && strncmp(name, "help", 4) == 0 ? &options_help_row : NULL;
}

static const struct option *find_letter(const struct option *options, char letter)
{
	for (const struct option *o = options; o->name; o++)
		if (o->letter && o->letter == letter)
			return o;
	return letter == options_help_row.letter ? &options_help_row : NULL;
}

/* The option name that is nearest to what was typed, or NULL. */
static const char *nearest_name(const struct option *options, const char *typed, size_t length)
{
	const char *names[NAMES_MAX];
	char word[TYPED_MAX];
	size_t count = 0;

	if (length == 0 || length >= sizeof word)
		return NULL;
	memcpy(word, typed, length);
	word[length] = '\0';
	for (const struct option *o = options; o->name && count + 1 < NAMES_MAX; o++)
		names[count++] = o->name;
	names[count++] = options_help_row.name;
	return spell_nearest(word, names, count);
}

/* What the option is called here that another tool calls so; letters may have their value attached. */
static const char *known_elsewhere(const struct command *cmd, const char *word, size_t length)
{
	for (const struct option_elsewhere *e = cmd->elsewhere; e && e->name; e++) {
		size_t own = strlen(e->name);

		if ((own == length || (own == 2 && length > 2)) && strncmp(e->name, word, own) == 0)
			return e->here;
	}
	return NULL;
}

static int unknown(const struct command *cmd, const char *word, size_t length, const char *nearest, struct error *err)
{
	struct typed typed = typed_show(word, length);
	const char *here = known_elsewhere(cmd, word, length);

	if (here)
		return error_set(err, "unknown option '%s'; %s", typed.text, here);
	if (nearest)
		return error_set(err, "unknown option '%s'; did you mean '--%s'?", typed.text, nearest);
	return error_set(err, "unknown option '%s'; 'assay help %s' lists its options", typed.text, cmd->name);
}

static int store_number(const struct option *o, const char *value, double *to, struct error *err)
{
	struct typed typed = typed_show(value, strlen(value));
	double number;

	if (parse_double(value, &number) && number >= o->min && number <= o->max) {
		*to = number;
		return 0;
	}
	if (isinf(o->max))
		return error_set(err, "option '--%s': '%s' is not a number of %.10g or more", o->name, typed.text,
				 o->min);
	return error_set(err, "option '--%s': '%s' is not a number from %.10g to %.10g%s%s", o->name, typed.text,
			 o->min, o->max, o->hint ? "; " : "", o->hint ? o->hint : "");
}

/* "a, b, c" from "a|b|c". */
static void list_choices(const char *choices, char *text, size_t size)
{
	size_t used = 0;

	for (const char *c = choices; *c && used + 3 < size; c++) {
		text[used++] = *c == '|' ? ',' : *c;
		if (*c == '|')
			text[used++] = ' ';
	}
	text[used] = '\0';
}

static const char *nearest_choice(const char *choices, const char *typed, char *copy, size_t size)
{
	const char *names[NAMES_MAX];
	size_t count = 0;

	snprintf(copy, size, "%s", choices);
	for (char *rest = NULL, *name = strtok_r(copy, "|", &rest); name && count < NAMES_MAX;
	     name = strtok_r(NULL, "|", &rest))
		names[count++] = name;
	return spell_nearest(typed, names, count);
}

static int store_choice(const struct option *o, const char *value, const char **to, struct error *err)
{
	struct typed typed = typed_show(value, strlen(value));
	char list[256], copy[256];
	const char *nearest;

	for (const char *name = o->choices; *name; name += strcspn(name, "|"), name += *name == '|') {
		if (strlen(value) == strcspn(name, "|") && strncmp(name, value, strlen(value)) == 0) {
			*to = value;
			return 0;
		}
	}
	list_choices(o->choices, list, sizeof list);
	nearest = nearest_choice(o->choices, value, copy, sizeof copy);
	return error_set(err, "option '--%s': '%s' is not one of %s%s%s%s", o->name, typed.text, list,
			 nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

static int store_item(const struct option *o, const char *value, struct option_list *list, struct error *err)
{
	const char **items = reallocarray(list->items, list->count + 2, sizeof *items);

	if (!items)
		return error_set(err, "option '--%s': out of memory", o->name);
	items[list->count++] = value;
	items[list->count] = NULL;
	list->items = items;
	return 0;
}

static int store(const struct option *o, const char *value, void *args, struct error *err)
{
	void *to = (char *)args + o->offset;

	switch (o->kind) {
	case OPTION_FLAG:
		*(bool *)to = true;
		return 0;
	case OPTION_TEXT:
	case OPTION_MAYBE:
		*(const char **)to = value;
		return 0;
	case OPTION_NUMBER:
		return store_number(o, value, to, err);
	case OPTION_CHOICE:
		return store_choice(o, value, to, err);
	case OPTION_LIST:
	case OPTION_WORDS:
		return store_item(o, value, to, err);
	}
	return error_set(err, "option '--%s' is of no known kind", o->name);
}

static bool is_option(const char *word)
{
	return word[0] == '-' && word[1] != '\0';
}

/* Takes the words behind the one at *at that an OPTION_WORDS still wants; `first` (may be NULL) stood with its name. */
static int store_words(const struct option *o, const char *first, int argc, char **argv, int *at, void *args,
		       struct error *err)
{
	double count = first != NULL, most = first ? o->min : o->max;

	if (first && store(o, first, args, err) < 0)
		return -1;
	for (; count < most && *at + 1 < argc && !is_option(argv[*at + 1]); count++)
		if (store(o, argv[++*at], args, err) < 0)
			return -1;
	if (count < o->min)
		return error_set(err, "option '--%s' needs %s: --%s %s", o->name, o->min > 1 ? "more words" : "a value",
				 o->name, o->argument);
	return 0;
}

/* Takes the word behind the option at *at as its value. "--" is none: it was meant to end the options. */
static int store_next(const struct option *o, int argc, char **argv, int *at, void *args, struct error *err)
{
	if (*at + 1 >= argc || strcmp(argv[*at + 1], "--") == 0)
		return error_set(err, "option '--%s' needs a value: --%s %s", o->name, o->name,
				 o->argument ? o->argument : "VALUE");
	return store(o, argv[++*at], args, err);
}

/* --name, --name=VALUE, --name VALUE. Returns 1 for --help. */
static int parse_long(const struct command *cmd, int argc, char **argv, int *at, void *args, struct error *err)
{
	const char *word = argv[*at], *name = word + 2;
	size_t length = strcspn(name, "=");
	const char *value = name[length] ? name + length + 1 : NULL;
	const struct option *o = find_name(cmd->options, name, length);

	if (!o)
		return unknown(cmd, word, length + 2, nearest_name(cmd->options, name, length), err);
	if (o->kind == OPTION_FLAG && value)
		return error_set(err, "option '--%s' takes no value, but '%s' was given", o->name,
				 typed_show(value, strlen(value)).text);
	if (o == &options_help_row)
		return 1;
	if (o->kind == OPTION_FLAG || o->kind == OPTION_MAYBE)
		return store(o, value ? value : "", args, err);
	if (o->kind == OPTION_WORDS)
		return store_words(o, value, argc, argv, at, args, err);
	return value ? store(o, value, args, err) : store_next(o, argc, argv, at, args, err);
}

/* -a, -ab, -nVALUE, -n VALUE. Returns 1 for -h. */
static int parse_letters(const struct command *cmd, int argc, char **argv, int *at, void *args, struct error *err)
{
	const char *word = argv[*at];

	for (const char *letter = word + 1; *letter; letter++) {
		const struct option *o = find_letter(cmd->options, *letter);
		const char *rest = letter + 1;

		if (!o && word[2]) /* a long option with one dash, perhaps */
			return unknown(cmd, word, strlen(word),
				       nearest_name(cmd->options, word + 1, strcspn(word + 1, "=")), err);
		if (!o)
			return unknown(cmd, word, 2, NULL, err);
		if (o == &options_help_row)
			return 1;
		if (o->kind == OPTION_WORDS)
			return store_words(o, *rest ? rest : NULL, argc, argv, at, args, err);
		if (o->kind != OPTION_FLAG)
			return *rest || o->kind == OPTION_MAYBE ? store(o, rest, args, err)
								: store_next(o, argc, argv, at, args, err);
		if (store(o, "", args, err) < 0)
			return -1;
	}
	return 0;
}

/* Moves the words [from, to), which are options, before the `held` operands that stand before them. */
static void move_before(char **argv, int held, int from, int to)
{
	for (; held > 0 && from < to; from++) {
		char *word = argv[from];

		memmove(argv + from - held + 1, argv + from - held, (size_t)held * sizeof *argv);
		argv[from - held] = word;
	}
}

int options_parse(const struct command *cmd, int argc, char **argv, void *args, int *ret_rest, struct error *err)
{
	int at, held = 0;

	for (at = 1; at < argc; at++) {
		int got, first = at;

		if (!is_option(argv[at])) {
			if (!cmd->mixed)
				break;
			held++;
			continue;
		}
		if (strcmp(argv[at], "--") == 0) {
			move_before(argv, held, at, at + 1);
			at++;
			break;
		}
		got = argv[at][1] == '-' ? parse_long(cmd, argc, argv, &at, args, err)
					 : parse_letters(cmd, argc, argv, &at, args, err);
		if (got > 0)
			options_help(cmd, stdout);
		if (got != 0)
			return got;
		move_before(argv, held, first, at + 1);
	}
	*ret_rest = at - held;
	return 0;
}

void options_release(const struct command *cmd, void *args)
{
	for (const struct option *o = cmd->options; o->name; o++) {
		struct option_list *list = (struct option_list *)(void *)((char *)args + o->offset);

		if (o->kind != OPTION_LIST && o->kind != OPTION_WORDS)
			continue;
		free(list->items);
		*list = (struct option_list){0};
	}
}

void options_spell(const struct option *o, char *text, size_t size)
{
	char letter[8] = "    ";

	if (o->letter)
		snprintf(letter, sizeof letter, "-%c, ", o->letter);
	snprintf(text, size, "%s--%s%s%s%s", letter, o->name, o->kind == OPTION_MAYBE ? "[=" : o->argument ? " " : "",
		 o->argument ? o->argument : "", o->kind == OPTION_MAYBE ? "]" : "");
}

void options_explain(const struct option *o, char *text, size_t size)
{
	char choices[256] = "";

	if (o->choices)
		list_choices(o->choices, choices, sizeof choices);
	snprintf(text, size, "%s%s%s%s%s%s", o->help, o->choices ? ": " : "", choices, o->fallback ? " [" : "",
		 o->fallback ? o->fallback : "", o->fallback ? "]" : "");
}

static void print_option(const struct option *o, size_t column, FILE *out)
{
	char name[128], text[512];
	size_t at;

	options_spell(o, name, sizeof name);
	options_explain(o, text, sizeof text);
	at = 2 + paragraph_width(name);
	fprintf(out, "  %s", name);
	if (at + 2 > column) {
		fputc('\n', out);
		at = 0;
	}
	fprintf(out, "%*s", (int)(column - at), "");
	paragraph_print(out, text, column, column);
}

/* Where the explanations start: behind the longest option that is not too long. */
static size_t help_column(const struct option *options)
{
	size_t column = 2 + strlen("-h, --help") + 2;

	for (const struct option *o = options; o->name; o++) {
		char name[128];
		size_t end;

		options_spell(o, name, sizeof name);
		end = 2 + paragraph_width(name) + 2;
		if (end > column && end <= HELP_COLUMN_MAX)
			column = end;
	}
	return column;
}

void options_help(const struct command *cmd, FILE *out)
{
	size_t column = help_column(cmd->options);

	fprintf(out, "Usage: assay %s %s\n\n%s\n\nOptions:\n", cmd->name, cmd->usage, cmd->description);
	for (const struct option *o = cmd->options; o->name; o++)
		print_option(o, column, out);
	print_option(&options_help_row, column, out);
	fprintf(out, "\nExamples:\n");
	for (const char *line = cmd->examples; *line; line += strcspn(line, "\n"), line += *line == '\n')
		fprintf(out, "%s%.*s\n", *line == '\n' ? "" : "  ", (int)strcspn(line, "\n"), line);
}

int options_whole(const char *option, double value, struct error *err)
{
	return value == floor(value) ? 0 : error_set(err, "option '--%s': %.10g is not a whole number", option, value);
}

uint64_t options_seed(double given)
{
	uint64_t seed = 0;

	if (given >= 0)
		return (uint64_t)given;
	if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
		seed = (uint64_t)getpid();
	return seed & 0xffffffff;
}
