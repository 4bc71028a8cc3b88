#include "trial/bench_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "trial/bench_words.h"
#include "trial/trial.h"

#define DEFAULT_SHELL "/bin/sh"
#define NO_LINE SIZE_MAX

void bench_shell_release(struct bench_shell *s)
{
	bench_words_free(s->hooks);
	bench_words_free(s->empty);
	*s = (struct bench_shell){0};
}

static int no_memory(struct error *err)
{
	return error_set(err, "out of memory for the commands");
}

/* The shell's words, then -c and the line. */
static char **with_line(char *const *shell, const char *line)
{
	size_t n = 0;
	char **words;

	while (shell[n])
		n++;
	words = calloc(n + 3, sizeof *words);
	for (size_t i = 0; words && i < n + 2; i++) {
		words[i] = strdup(i < n ? shell[i] : i == n ? "-c" : line);
		if (!words[i]) {
			bench_words_free(words);
			return NULL;
		}
	}
	return words;
}

/* Where a request holds one text per line; the reference that was added, if there is one, is line 0 of it. */
static const char *pick(const struct bench_texts *t, size_t line)
{
	return t->count == 0 ? NULL : t->count == 1 ? t->items[0] : t->items[line];
}

static int check_counts(const struct bench_request *r, bool added, size_t commands, struct error *err)
{
	size_t lines = r->lines.count + added;

	for (size_t i = 0; i < BENCH_EXTRAS; i++)
		if (r->extras[i].count > 1 && r->extras[i].count != lines)
			return error_set(
				err, "--%s was given %zu times; expected once, or once for each of the %zu commands%s",
				bench_extra_names[i], r->extras[i].count, lines,
				added ? ", the one of --reference first" : "");
	if (r->names.count > r->lines.count && r->names.count != commands)
		return error_set(err,
				 "--name was given %zu times for %zu command%s; to run without a shell: --shell none",
				 r->names.count, commands, commands == 1 ? "" : "s");
	return 0;
}

static int fill_parameters(const struct bench_parameters *p, size_t at, struct bench_command *c)
{
	c->parameters = calloc(p->count + 1, sizeof *c->parameters);
	for (size_t i = 0; c->parameters && i < p->count; i++) {
		struct bench_parameter *to = &c->parameters[c->parameter_count++];

		to->name = strdup(p->items[i].name);
		to->value = strdup(bench_parameters_value(p, i, at));
		if (!to->name || !to->value)
			return -1;
	}
	return c->parameters ? 0 : -1;
}

/* What was given as the name of the command `index`, which is `line` with parameters; NULL: nothing. */
static const char *name_of(const struct bench_request *r, size_t line, size_t index)
{
	if (r->names.count > r->lines.count)
		return index < r->names.count ? r->names.items[index] : NULL;
	return line < r->names.count ? r->names.items[line] : NULL;
}

/* One command: `line` of the request, or NO_LINE for the reference that was added, which has no parameters. */
static int add(const struct bench_request *r, struct bench *b, size_t line, size_t at, bool added, struct error *err)
{
	static const struct bench_parameters none;
	const struct bench_parameters *p = line == NO_LINE ? &none : &r->parameters;
	size_t place = line == NO_LINE ? 0 : line + added, index = b->count - added;
	const char *name = line == NO_LINE ? NULL : name_of(r, line, index);
	struct bench_command *c = &b->commands[b->count++];

	c->line = bench_parameters_fill(p, at, line == NO_LINE ? r->reference : r->lines.items[line]);
	if (!c->line || fill_parameters(p, at, c) < 0)
		return no_memory(err);
	if (name && !(c->name = bench_parameters_fill(p, at, name)))
		return no_memory(err);
	for (size_t i = 0; i < BENCH_EXTRAS; i++) {
		const char *text = pick(&r->extras[i], place);

		if (text && !(c->extras[i] = bench_parameters_fill(p, at, text)))
			return no_memory(err);
	}
	return 0;
}

/* 1 where the text is the reference, as asked for or filled in; -1 when out of memory. */
static int is_reference(const struct bench_request *r, const char *text, size_t at)
{
	CLEANUP(free_cleanup) char *filled = bench_parameters_fill(&r->parameters, at, text);

	return !filled ? -1 : strcmp(filled, r->reference) == 0 || strcmp(text, r->reference) == 0;
}

/* 1 where --reference names one of the commands that run anyway; -1 when out of memory. */
static int is_listed(const struct bench_request *r, size_t combinations)
{
	int got = 0;

	for (size_t at = 0; at < combinations; at++) {
		for (size_t i = 0; i < r->lines.count; i++) {
			const char *name = name_of(r, i, at * r->lines.count + i);

			got = is_reference(r, r->lines.items[i], at);
			if (got == 0 && name)
				got = is_reference(r, name, at);
			if (got != 0)
				return got;
		}
	}
	return 0;
}

/* The first command that the reference names, or whose line as asked for it is. */
static size_t find_reference(const struct bench_request *r, const struct bench *b)
{
	for (size_t i = 0; r->reference && i < b->count; i++)
		if (strcmp(bench_label(&b->commands[i]), r->reference) == 0 ||
		    strcmp(b->commands[i].line, r->reference) == 0)
			return i;
	for (size_t i = 0; r->reference && i < b->count; i++) {
		const char *name = name_of(r, i % r->lines.count, i);

		if (strcmp(r->lines.items[i % r->lines.count], r->reference) == 0 ||
		    (name && strcmp(name, r->reference) == 0))
			return i;
	}
	return 0;
}

static int add_all(const struct bench_request *r, struct bench *b, struct error *err)
{
	size_t combinations, commands;
	int listed = 1;
	bool added;

	if (bench_parameters_combinations(&r->parameters, &combinations, err) < 0)
		return -1;
	commands = combinations * r->lines.count;
	if (r->reference && commands < TRIAL_SIDES_MAX && (listed = is_listed(r, combinations)) < 0)
		return no_memory(err);
	added = !listed;
	if (commands + added >= TRIAL_SIDES_MAX)
		return error_set(err, "%zu commands are more than the %d that can be compared", commands + added,
				 TRIAL_SIDES_MAX - 1);
	if (check_counts(r, added, commands, err) < 0)
		return -1;
	b->commands = calloc(commands + added, sizeof *b->commands);
	if (!b->commands)
		return no_memory(err);
	if (added && add(r, b, NO_LINE, 0, added, err) < 0)
		return -1;
	for (size_t at = 0; at < combinations; at++)
		for (size_t line = 0; line < r->lines.count; line++)
			if (add(r, b, line, at, added, err) < 0)
				return -1;
	b->reference = added ? 0 : find_reference(r, b);
	return 0;
}

/* With one command in need of a shell all get one, or they would not be compared like with like. */
static bool wants_shell(const struct bench_request *r, const struct bench *b)
{
	if (strcmp(r->shell, "auto") != 0)
		return strcmp(r->shell, "none") != 0;
	for (size_t i = 0; i < b->count; i++)
		if (bench_words_need_shell(b->commands[i].line))
			return true;
	return false;
}

static int choose_shell(const struct bench_request *r, struct bench *b, struct bench_shell *s, struct error *err)
{
	bool own = strcmp(r->shell, "auto") != 0 && strcmp(r->shell, "default") != 0 && strcmp(r->shell, "none") != 0;
	bool used = wants_shell(r, b);

	if (bench_words_split(own ? r->shell : DEFAULT_SHELL, &s->hooks, err) < 0)
		return error_prefix(err, "--shell");
	for (size_t i = 0; i < b->count; i++) {
		struct bench_command *c = &b->commands[i];

		if (used && !(c->words = with_line(s->hooks, c->line)))
			return no_memory(err);
		if (!used && bench_words_split(c->line, &c->words, err) < 0)
			return -1;
	}
	if (used && (!(b->shell = strdup(own ? r->shell : DEFAULT_SHELL)) || !(s->empty = with_line(s->hooks, ""))))
		return no_memory(err);
	return 0;
}

int bench_plan(const struct bench_request *r, struct bench *ret, struct bench_shell *ret_shell, struct error *err)
{
	CLEANUP(bench_release) struct bench b = {.looks = 1};
	CLEANUP(bench_shell_release) struct bench_shell s = {0};

	if (add_all(r, &b, err) < 0 || choose_shell(r, &b, &s, err) < 0)
		return -1;
	*ret = b;
	*ret_shell = s;
	b = (struct bench){0};
	s = (struct bench_shell){0};
	return 0;
}
