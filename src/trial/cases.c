#include "trial/cases.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fs.h"
#include "base/spell.h"
#include "base/utf8.h"
#include "trial/json_line.h"
#include "trial/labels.h"

#define DEPTH_MAX 6

/* Where the reading stands: what an error names. */
struct place {
	const char *text, *name;
	size_t length;
	struct json_step steps[DEPTH_MAX];
	size_t depth;
	struct error *err;
};

static struct place into(const struct place *p, const char *key, size_t index)
{
	struct place deeper = *p;

	if (deeper.depth < DEPTH_MAX)
		deeper.steps[deeper.depth++] = (struct json_step){key, index};
	return deeper;
}

/* "FILE: line N: cases[2].env.NAME: " and the rest of the sentence. */
static int wrong(const struct place *p, const char *sentence)
{
	CLEANUP(buf_release) struct buf where;

	buf_init(&where);
	for (size_t i = 0; i < p->depth; i++) {
		if (!p->steps[i].key) {
			buf_printf(&where, "[%zu]", p->steps[i].index);
			continue;
		}
		buf_puts(&where, where.length ? "." : "");
		utf8_append_line(&where, p->steps[i].key, 40);
	}
	return error_set(p->err, "%s: line %zu: %s%s%s", p->name, json_line(p->text, p->length, p->steps, p->depth),
			 where.text, where.length ? ": " : "", sentence);
}

static int out_of_memory(const struct place *p)
{
	return error_set(p->err, "%s: out of memory", p->name);
}

static const char *kind_of(const json_t *value)
{
	static const char *const kinds[] = {
		[JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array",  [JSON_STRING] = "a string",
		[JSON_INTEGER] = "a number", [JSON_REAL] = "a number",   [JSON_TRUE] = "true",
		[JSON_FALSE] = "false",	     [JSON_NULL] = "null",
	};

	return kinds[json_typeof(value)];
}

static int wrong_kind(const struct place *p, const char *expected, const json_t *value)
{
	struct error sentence;

	error_set(&sentence, "expected %s, and it is %s", expected, kind_of(value));
	return wrong(p, sentence.text);
}

/* An argument or a variable cannot hold the character that ends it. */
static int check_text(const struct place *p, const json_t *value)
{
	if (!json_is_string(value))
		return wrong_kind(p, "a string", value);
	if (strlen(json_string_value(value)) != json_string_length(value))
		return wrong(p, "it holds the character U+0000, which no command line can");
	return 0;
}

static int take_text(const struct place *p, const json_t *object, const char *key, bool may_be_null, char **to)
{
	const json_t *value = json_object_get(object, key);
	struct place at = into(p, key, 0);
	char *copy;

	if (!value || (may_be_null && json_is_null(value)))
		return 0;
	if (check_text(&at, value) < 0)
		return -1;
	if (json_string_length(value) == 0)
		return wrong(&at, "it is empty");
	copy = strdup(json_string_value(value));
	if (!copy)
		return out_of_memory(p);
	free(*to);
	*to = copy;
	return 0;
}

static void free_list(char **list)
{
	for (char **item = list; item && *item; item++)
		free(*item);
	free(list);
}

static size_t list_length(char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

/* Makes room for `more` items behind those of *list. */
static int grow_list(char ***list, size_t more)
{
	size_t n = list_length(*list);
	char **grown = reallocarray(*list, n + more + 1, sizeof *grown);

	if (!grown)
		return -1;
	memset(grown + n, 0, (more + 1) * sizeof *grown);
	*list = grown;
	return 0;
}

/* Adds an array's strings to *list. */
static int take_list(const struct place *p, const json_t *object, const char *key, char ***list)
{
	const json_t *array = json_object_get(object, key);
	struct place at = into(p, key, 0);
	size_t n;

	if (array && !json_is_array(array))
		return wrong_kind(&at, "an array of strings", array);
	n = list_length(*list);
	if (grow_list(list, json_array_size(array)) < 0)
		return out_of_memory(p);
	for (size_t i = 0; i < json_array_size(array); i++) {
		struct place item = into(&at, NULL, i);

		if (check_text(&item, json_array_get(array, i)) < 0)
			return -1;
		(*list)[n + i] = strdup(json_string_value(json_array_get(array, i)));
		if (!(*list)[n + i])
			return out_of_memory(p);
	}
	return 0;
}

/* Adds "NAME=TEXT" for each member, in place of an older one of that name. */
static int take_variables(const struct place *p, const json_t *object, char ***list)
{
	const json_t *variables = json_object_get(object, "env");
	struct place at = into(p, "env", 0);
	const char *name;
	json_t *value;

	if (variables && !json_is_object(variables))
		return wrong_kind(&at, "an object of strings", variables);
	if (grow_list(list, json_object_size(variables)) < 0)
		return out_of_memory(p);
	json_object_foreach((json_t *)variables, name, value)
	{
		struct place variable = into(&at, name, 0);
		size_t length = strlen(name), i = 0;
		char *text;

		if (length == 0 || strchr(name, '='))
			return wrong(&variable, "no variable can have that name");
		if (check_text(&variable, value) < 0)
			return -1;
		if (asprintf(&text, "%s=%s", name, json_string_value(value)) < 0)
			return out_of_memory(p);
		while ((*list)[i] && (strncmp((*list)[i], name, length) != 0 || (*list)[i][length] != '='))
			i++;
		free((*list)[i]);
		(*list)[i] = text;
	}
	return 0;
}

static int check_keys(const struct place *p, const json_t *object, const char *const *known, size_t count)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)object, key, value)
	{
		struct place at = into(p, key, 0);
		const char *nearest;
		struct error sentence;
		size_t i = 0;

		while (i < count && strcmp(key, known[i]) != 0)
			i++;
		if (i < count)
			continue;
		nearest = spell_nearest(key, known, count);
		error_set(&sentence, "unknown key%s%s%s", nearest ? "; did you mean '" : "", nearest ? nearest : "",
			  nearest ? "'?" : "");
		return wrong(&at, sentence.text);
	}
	return 0;
}

static const char *const case_keys[] = {"label", "binary", "prefix", "args", "env", "model", "gpus"};
#define CASE_KEYS (sizeof case_keys / sizeof *case_keys)

/* What defaults and cases have in common: args and env are added to, the others replace what the defaults said. */
static int take_common(const struct place *p, const json_t *object, struct matrix_case *c)
{
	if (json_object_get(object, "prefix")) {
		free_list(c->prefix);
		c->prefix = NULL;
	}
	if (take_text(p, object, "binary", false, &c->binary) < 0 || take_list(p, object, "prefix", &c->prefix) < 0 ||
	    take_list(p, object, "args", &c->args) < 0 || take_variables(p, object, &c->env) < 0)
		return -1;
	if (json_is_null(json_object_get(object, "model"))) {
		free(c->model);
		c->model = NULL;
	}
	if (json_is_null(json_object_get(object, "gpus"))) {
		free(c->gpus);
		c->gpus = NULL;
	}
	return take_text(p, object, "model", true, &c->model) < 0 || take_text(p, object, "gpus", true, &c->gpus) < 0
		       ? -1
		       : 0;
}

static int take_defaults(const struct place *p, const json_t *root, struct matrix_case *c)
{
	const json_t *defaults = json_object_get(root, "defaults");
	struct place at = into(p, "defaults", 0);

	if (!defaults)
		return 0;
	if (!json_is_object(defaults))
		return wrong_kind(&at, "an object", defaults);
	if (check_keys(&at, defaults, case_keys + 1, CASE_KEYS - 1) < 0) /* a label is one case's own */
		return -1;
	return take_common(&at, defaults, c);
}

static void case_release(struct matrix_case *c)
{
	free(c->label);
	free(c->tag);
	free(c->binary);
	free_list(c->prefix);
	free_list(c->args);
	free_list(c->env);
	free(c->model);
	free(c->gpus);
	*c = (struct matrix_case){0};
}

void cases_release(struct cases *c)
{
	for (size_t i = 0; i < c->count; i++)
		case_release(&c->items[i]);
	free(c->items);
	json_decref(c->root);
	*c = (struct cases){0};
}

static int take_case(const struct place *p, const json_t *root, size_t index, struct cases *cases)
{
	struct place list = into(p, "cases", 0), at = into(&list, NULL, index);
	const json_t *object = json_array_get(json_object_get(root, "cases"), index);
	struct matrix_case *c = &cases->items[cases->count++];

	if (!json_is_object(object))
		return wrong_kind(&at, "an object", object);
	if (check_keys(&at, object, case_keys, CASE_KEYS) < 0)
		return -1;
	if (!json_object_get(object, "label"))
		return wrong(&at, "it has no \"label\"");
	if (take_text(&at, object, "label", false, &c->label) < 0 || take_defaults(p, root, c) < 0 ||
	    take_common(&at, object, c) < 0)
		return -1;
	if (!c->binary)
		c->binary = strdup("llama-bench");
	return c->binary ? 0 : out_of_memory(p);
}

/* Distinct labels, and a folder's name for each. */
static int name_cases(const struct place *p, struct cases *cases)
{
	CLEANUP(labels_release) struct labels labels = {0};

	if (labels_init(&labels) < 0)
		return out_of_memory(p);
	for (size_t i = 0; i < cases->count; i++) {
		struct place list = into(p, "cases", 0), first = list, at;
		size_t same = labels_add(&labels, cases->items[i].label, &cases->items[i].tag);
		struct error sentence;

		if (!cases->items[i].tag && same == SIZE_MAX)
			return out_of_memory(p);
		if (same == SIZE_MAX)
			continue;
		first = into(&list, NULL, same);
		first = into(&first, "label", 0);
		at = into(&list, NULL, i);
		at = into(&at, "label", 0);
		error_set(&sentence, "the case of line %zu has the same label",
			  json_line(p->text, p->length, first.steps, first.depth));
		return wrong(&at, sentence.text);
	}
	return 0;
}

static int take_all(const struct place *p, const json_t *root, struct cases *cases)
{
	static const char *const keys[] = {"defaults", "cases"};
	const json_t *list = json_object_get(root, "cases");
	struct place at = into(p, "cases", 0);
	struct matrix_case unused = {0};
	int failed;

	if (!json_is_object(root))
		return wrong_kind(p, "an object with \"cases\"", root);
	if (check_keys(p, root, keys, 2) < 0)
		return -1;
	if (!list)
		return wrong(p, "it has no \"cases\"");
	if (!json_is_array(list))
		return wrong_kind(&at, "an array of cases", list);
	if (json_array_size(list) == 0)
		return wrong(&at, "it holds no case");
	if (json_array_size(list) > CASES_MAX)
		return wrong(&at, "it holds more than 10000 cases");
	/* Once for themselves: what is wrong with the defaults is told before what is wrong with a case. */
	failed = take_defaults(p, root, &unused) < 0;
	case_release(&unused);
	cases->items = failed ? NULL : calloc(json_array_size(list), sizeof *cases->items);
	if (failed || !cases->items)
		return failed ? -1 : out_of_memory(p);
	for (size_t i = 0; i < json_array_size(list); i++)
		if (take_case(p, root, i, cases) < 0)
			return -1;
	return name_cases(p, cases);
}

int cases_parse(const char *text, size_t length, const char *name, struct cases *ret, struct error *err)
{
	struct place p = {.text = text, .length = length, .name = name, .err = err};
	struct cases cases = {0};
	json_error_t problem;

	cases.root = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &problem);
	if (!cases.root)
		return error_set(err, "%s: line %d, column %d: %s", name, problem.line, problem.column, problem.text);
	if (take_all(&p, cases.root, &cases) < 0) {
		cases_release(&cases);
		return -1;
	}
	*ret = cases;
	return 0;
}

int cases_read(const char *path, struct cases *ret, struct error *err)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	if (fs_read_file(path, CASES_FILE_MAX, &text, err) < 0)
		return -1;
	return cases_parse(text.text, text.length, path, ret, err);
}
