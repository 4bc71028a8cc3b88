#include "cmd/matrix_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define PAIRS_DEFAULT 8
#define PAIRS_UNTIL_DECIDED 60 /* the last look */

const struct matrix_args matrix_args_none = {
	.seed = NAN, .pairs = NAN, .warmup = NAN, .timeout_s = NAN, .confidence = NAN, .margin_percent = NAN};

#define AT(field) offsetof(struct matrix_args, field)

const struct option matrix_options[] = {
	{"a", 0, OPTION_TEXT, AT(a), "NAME=BIN_DIR", "side A: a name, and the folder of its binaries"},
	{"b", 0, OPTION_TEXT, AT(b), "NAME=BIN_DIR", "side B, which is judged"},
	{"a-env", 0, OPTION_LIST, AT(a_env), "K=V", "set a variable on side A; may be repeated"},
	{"b-env", 0, OPTION_LIST, AT(b_env), "K=V", "set a variable on side B; may be repeated"},
	{"out", 'o', OPTION_TEXT, AT(out), "DIR", "folder for the results; must be new or empty",
	 "assay-runs/DATE-matrix"},
	{"resume", 0, OPTION_TEXT, AT(resume), "DIR", "go on with an interrupted matrix, as it was begun"},
	{"pairs", 'n', OPTION_NUMBER, AT(pairs), "N", "runs of each side of each case",
	 "8; with a fixed --order: one time through", NULL, 1, 10000},
	{"until-decided", 0, OPTION_FLAG, AT(until_decided), NULL,
	 "look after 8, 14, 24, 38 and 60 pairs and stop once it is decided (--pairs: at most)"},
	{"order", 0, OPTION_TEXT, AT(order), "ORDER",
	 "random (ABBA or BAAB by coin, block by block), or a fixed one such as ABBA", "random"},
	{"seed", 0, OPTION_NUMBER, AT(seed), "N", "of the random order; matrix.json has the one used", "by chance",
	 NULL, 0, MATRIX_SEED_MAX},
	{"warmup", 'w', OPTION_NUMBER, AT(warmup), "N", "runs of each side first that do not count", "0", NULL, 0,
	 1000},
	{"only", 0, OPTION_TEXT, AT(only), "REGEX", "only cases whose label matches (extended regular expression)"},
	{"timeout", 0, OPTION_NUMBER, AT(timeout_s), "S", "end an arm after S seconds; 0: never", "1800", NULL, 0, 1e9},
	{"precheck", 0, OPTION_CHOICE, AT(precheck), "WHAT",
	 "when the machine is busy before an arm; wait goes on after 60 s, as not clean", "wait",
	 "wait|refuse|warn|off"},
	{"noise", 0, OPTION_TEXT, AT(noise), "FILE", "noise floors, as `assay noise` writes them"},
	{"rule", 0, OPTION_CHOICE, AT(rule), "RULE", "what decides", "auto", "auto|paired|separation"},
	{"margin", 0, OPTION_NUMBER, AT(margin_percent), "PCT", "differences up to PCT percent do not matter",
	 "each metric's own floor", NULL, 0, 1000},
	{"confidence", 0, OPTION_NUMBER, AT(confidence), "PCT", "of the intervals, in percent or as a share (0.95)",
	 "95", NULL, 0.5, 99.9999},
	{"allow-tradeoff", 0, OPTION_FLAG, AT(allow_tradeoff), NULL, "exit with 0 after a tradeoff"},
	{"fail-on-undecided", 0, OPTION_FLAG, AT(fail_on_undecided), NULL, "exit with 4 where a case is not decided"},
	{"json", 0, OPTION_FLAG, AT(json), NULL, "print matrix.json on standard output"},
	{"markdown", 0, OPTION_FLAG, AT(markdown), NULL, "print the table as Markdown"},
	{"quiet", 'q', OPTION_FLAG, AT(quiet), NULL, "print the answer and errors only"},
	OPTIONS_END,
};

static int take_side(char name, const char *text, const struct option_list *env, struct matrix_side *side,
		     struct error *err)
{
	const char *equals = text ? strchr(text, '=') : NULL;

	if (!text)
		return error_set(err, "--%c is missing: --%c NAME=BIN_DIR", name, name);
	if (!equals || equals == text || !equals[1])
		return error_set(err, "--%c '%s': expected NAME=BIN_DIR", name, typed_show(text, strlen(text)).text);
	side->name = strndup(text, (size_t)(equals - text));
	side->folder = strdup(equals + 1);
	side->env = json_array();
	if (!side->name || !side->folder || !side->env)
		return error_set(err, "out of memory for side %c", name);
	for (size_t i = 0; i < env->count; i++) {
		json_t *variable = json_string(env->items[i]);

		if (!strchr(env->items[i], '=') || env->items[i][0] == '=' || !variable) {
			json_decref(variable);
			return error_set(err, "--%c-env '%s': expected NAME=VALUE in UTF-8", name,
					 typed_show(env->items[i], strlen(env->items[i])).text);
		}
		json_array_append_new(side->env, variable);
	}
	return 0;
}

static json_int_t seed_by_chance(void)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
		seed = (uint64_t)clock_wall_ns();
	return (json_int_t)(seed % 1000000000); /* short enough to be typed again */
}

static double or_default(double value, double fallback)
{
	return isnan(value) ? fallback : value;
}

static size_t pairs_of(const struct matrix_args *a)
{
	bool fixed = a->order && strcmp(a->order, "random") != 0;
	size_t once = 0;

	for (const char *c = fixed ? a->order : ""; *c; c++)
		once += *c == 'A';
	if (!isnan(a->pairs))
		return (size_t)a->pairs;
	return a->until_decided ? PAIRS_UNTIL_DECIDED : fixed ? once : PAIRS_DEFAULT;
}

static int copy_texts(const struct matrix_args *a, const char *cases, struct matrix_plan *p)
{
	p->cases_path = strdup(cases);
	p->order = strdup(a->order ? a->order : "random");
	p->precheck = strdup(a->precheck ? a->precheck : "wait");
	p->rule = strdup(a->rule ? a->rule : "auto");
	p->only = a->only ? strdup(a->only) : NULL;
	p->noise = a->noise ? strdup(a->noise) : NULL;
	return p->cases_path && p->order && p->precheck && p->rule && !p->only == !a->only && !p->noise == !a->noise
		       ? 0
		       : -1;
}

int matrix_args_plan(const struct matrix_args *a, char **words, struct matrix_plan *ret, struct error *err)
{
	if (!words[0])
		return error_set(
			err,
			"no cases given; usage: assay matrix [options] CASES.json --a NAME=BIN_DIR --b NAME=BIN_DIR");
	if (words[1])
		return error_set(err, "'%s' is one word too many", typed_show(words[1], strlen(words[1])).text);
	if (take_side('a', a->a, &a->a_env, &ret->sides[0], err) < 0 ||
	    take_side('b', a->b, &a->b_env, &ret->sides[1], err) < 0)
		return -1;
	if (strcmp(ret->sides[0].name, ret->sides[1].name) == 0)
		return error_set(err, "--a and --b: both sides are called '%s': give them different names",
				 typed_show(ret->sides[0].name, strlen(ret->sides[0].name)).text);
	if ((!isnan(a->pairs) && options_whole("pairs", a->pairs, err) < 0) ||
	    (!isnan(a->warmup) && options_whole("warmup", a->warmup, err) < 0) ||
	    (!isnan(a->seed) && options_whole("seed", a->seed, err) < 0))
		return -1;
	if (a->confidence >= 1 && a->confidence < 50)
		return error_set(err, "option '--confidence': %g is no percentage of 50 or more, and no share below 1",
				 a->confidence);
	if (copy_texts(a, words[0], ret) < 0)
		return error_set(err, "out of memory for the plan");
	ret->seed = isnan(a->seed) ? seed_by_chance() : (json_int_t)a->seed;
	ret->pairs = pairs_of(a);
	ret->warmup = (size_t)or_default(a->warmup, 0);
	ret->until_decided = a->until_decided;
	ret->timeout_s = or_default(a->timeout_s, 1800);
	ret->confidence = or_default(a->confidence, 95);
	if (ret->confidence >= 1)
		ret->confidence /= 100;
	ret->margin = or_default(a->margin_percent, 0) / 100;
	return cases_read(words[0], &ret->cases, err);
}

int matrix_args_check_resume(const struct matrix_args *a, char **words, struct error *err)
{
	const struct {
		const char *name;
		bool given;
	} parts[] = {
		{"a", a->a},
		{"b", a->b},
		{"a-env", a->a_env.count},
		{"b-env", a->b_env.count},
		{"out", a->out},
		{"pairs", !isnan(a->pairs)},
		{"until-decided", a->until_decided},
		{"order", a->order},
		{"seed", !isnan(a->seed)},
		{"warmup", !isnan(a->warmup)},
		{"only", a->only},
		{"timeout", !isnan(a->timeout_s)},
		{"precheck", a->precheck},
		{"noise", a->noise},
		{"rule", a->rule},
		{"margin", !isnan(a->margin_percent)},
		{"confidence", !isnan(a->confidence)},
	};

	if (words[0])
		return error_set(err, "--resume takes the cases from the matrix: '%s' is one word too many",
				 typed_show(words[0], strlen(words[0])).text);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (parts[i].given)
			return error_set(err, "--resume goes on as the matrix was begun: --%s has to be left out",
					 parts[i].name);
	return 0;
}
