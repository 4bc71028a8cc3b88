#include "trial/matrix_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"

#define SCHEMA "assay-matrix-plan-1"

void matrix_plan_release(struct matrix_plan *p)
{
	for (int i = 0; i < 2; i++) {
		free(p->sides[i].name);
		free(p->sides[i].folder);
		json_decref(p->sides[i].env);
	}
	cases_release(&p->cases);
	free(p->cases_path);
	free(p->order);
	free(p->only);
	free(p->noise);
	free(p->precheck);
	free(p->rule);
	*p = (struct matrix_plan){.seed = 0};
}

enum precheck matrix_precheck(const char *name)
{
	return strcmp(name, "refuse") == 0 ? PRECHECK_REFUSE
	       : strcmp(name, "warn") == 0 ? PRECHECK_WARN
	       : strcmp(name, "off") == 0  ? PRECHECK_OFF
					   : PRECHECK_WAIT;
}

int matrix_plan_check(const struct matrix_plan *p, struct error *err)
{
	for (int i = 0; i < 2; i++) {
		const struct matrix_side *side = &p->sides[i];

		if (!fs_is_dir(side->folder))
			return error_set(err, "--%c '%s': %s is no folder", "ab"[i], side->name, side->folder);
		for (size_t k = 0; k < p->cases.count; k++) {
			const struct matrix_case *c = &p->cases.items[k];
			CLEANUP(free_cleanup) char *path =
				*c->binary == '/' ? strdup(c->binary) : fs_join(side->folder, c->binary);

			/* Behind a prefix it may be in a container. */
			if (path && !*c->prefix && access(path, X_OK) < 0)
				return error_set(err,
						 "--%c '%s': the binary of case '%.60s' cannot be executed: %s: %s",
						 "ab"[i], side -> name, c -> label, path, strerror(errno));
		}
	}
	return 0;
}

bool matrix_plan_is_null(const struct matrix_plan *p)
{
	CLEANUP(free_cleanup) char *a = realpath(p->sides[0].folder, NULL);
	CLEANUP(free_cleanup) char *b = realpath(p->sides[1].folder, NULL);

	return a && b && strcmp(a, b) == 0 && json_equal(p->sides[0].env, p->sides[1].env);
}

/* FNV-1a of what the cases say, however the file is laid out. */
static char *fingerprint(const struct cases *cases)
{
	CLEANUP(free_cleanup) char *text = json_dumps(cases->root, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	char *hex;

	if (!text)
		return NULL;
	for (const char *c = text; *c; c++)
		hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
	return asprintf(&hex, "%016" PRIx64, hash) < 0 ? NULL : hex;
}

static json_t *side_json(const struct matrix_side *side)
{
	json_t *object = json_object();

	json_put_text(object, "name", side->name);
	json_put_text(object, "folder", side->folder);
	json_object_set(object, "env", side->env);
	return object;
}

static json_t *plan_json(const struct matrix_plan *p)
{
	CLEANUP(free_cleanup) char *print = fingerprint(&p->cases), *cwd = getcwd(NULL, 0);
	json_t *root = json_object();

	json_put_text(root, "schema", SCHEMA);
	json_put_text(root, "cwd", cwd);
	json_put_text(root, "cases", p->cases_path);
	json_put_text(root, "cases_fingerprint", print);
	json_object_set_new(root, "a", side_json(&p->sides[0]));
	json_object_set_new(root, "b", side_json(&p->sides[1]));
	json_put_text(root, "order", p->order);
	json_put_integer(root, "seed", p->seed);
	json_put_integer(root, "pairs", (json_int_t)p->pairs);
	json_put_bool(root, "until_decided", p->until_decided);
	json_put_integer(root, "warmup", (json_int_t)p->warmup);
	json_put_number(root, "timeout_s", p->timeout_s);
	json_put_text(root, "only", p->only);
	json_put_text(root, "noise", p->noise);
	json_put_text(root, "precheck", p->precheck);
	json_put_text(root, "rule", p->rule);
	json_put_number(root, "confidence", p->confidence);
	json_put_number(root, "margin", p->margin);
	return root;
}

int matrix_plan_write(const struct matrix_plan *p, const char *path, struct error *err)
{
	CLEANUP(json_cleanup) json_t *root = plan_json(p);
	CLEANUP(fd_cleanup) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return error_set(err, "%s: %s", path, strerror(errno));
	/* Made with its mode before anything is in it; an empty one would stand in the way of the next try. */
	if (json_write_file(path, root, err) == 0)
		return 0;
	unlink(path);
	return -1;
}

static int take_side(const json_t *root, const char *key, struct matrix_side *side)
{
	const json_t *object = json_object_get(root, key);
	const char *name = json_get_text(object, "name", NULL), *folder = json_get_text(object, "folder", NULL);
	const json_t *variable, *env = json_object_get(object, "env");
	size_t i;

	if (!name || !folder || !json_is_array(env))
		return -1;
	json_array_foreach(env, i, variable)
		if (!json_is_string(variable) || !strchr(json_string_value(variable), '='))
			return -1;
	side->name = strdup(name);
	side->folder = strdup(folder);
	side->env = json_deep_copy(env);
	return side->name && side->folder && side->env ? 0 : -1;
}

static char *copy_text(const json_t *root, const char *key)
{
	const char *text = json_get_text(root, key, NULL);

	return text ? strdup(text) : NULL;
}

/* -1 where it is missing, or no plan of ours would have it. */
static int take_count(const json_t *root, const char *key, size_t *ret)
{
	double value = json_get_number(root, key, -1);

	if (!(value >= 0 && value <= 1e6))
		return -1;
	*ret = (size_t)value;
	return 0;
}

static int take_plan(const json_t *root, struct matrix_plan *p)
{
	double seed = json_get_number(root, "seed", -1);

	p->cases_path = copy_text(root, "cases");
	p->order = copy_text(root, "order");
	p->only = copy_text(root, "only");
	p->noise = copy_text(root, "noise");
	p->precheck = copy_text(root, "precheck");
	p->rule = copy_text(root, "rule");
	p->seed = seed >= 0 && seed <= MATRIX_SEED_MAX ? (json_int_t)seed : -1;
	p->until_decided = json_is_true(json_object_get(root, "until_decided"));
	p->timeout_s = json_get_number(root, "timeout_s", -1);
	p->confidence = json_get_number(root, "confidence", -1);
	p->margin = json_get_number(root, "margin", -1);
	if (take_count(root, "pairs", &p->pairs) < 0 || take_count(root, "warmup", &p->warmup) < 0 || p->pairs == 0)
		return -1;
	if (!p->cases_path || !p->order || !p->precheck || !p->rule || p->seed < 0)
		return -1;
	if (!(p->timeout_s >= 0 && p->confidence > 0 && p->confidence < 1 && p->margin >= 0))
		return -1;
	return take_side(root, "a", &p->sides[0]) < 0 || take_side(root, "b", &p->sides[1]) < 0 ? -1 : 0;
}

static int take_cases(const json_t *root, struct matrix_plan *p, struct error *err)
{
	CLEANUP(free_cleanup) char *print = NULL;

	if (cases_read(p->cases_path, &p->cases, err) < 0)
		return -1;
	print = fingerprint(&p->cases);
	if (!print || strcmp(print, json_get_text(root, "cases_fingerprint", "")) != 0)
		return error_set(
			err,
			"%s: it has changed since the matrix was begun: go on with the file as it was, or begin a "
			"new matrix",
			p->cases_path);
	return 0;
}

int matrix_plan_read(const char *path, struct matrix_plan *ret, struct error *err)
{
	CLEANUP(json_cleanup) json_t *root = json_read_file(path, err);
	CLEANUP(free_cleanup) char *cwd = getcwd(NULL, 0);
	struct matrix_plan plan = {.seed = 0};

	if (!root)
		return -1;
	if (strcmp(json_get_text(root, "schema", ""), SCHEMA) != 0 || take_plan(root, &plan) < 0) {
		matrix_plan_release(&plan);
		return error_set(err, "%s: it is no plan of a matrix of this version of assay", path);
	}
	/* Folders and files in it are relative to that. */
	if (!cwd || strcmp(cwd, json_get_text(root, "cwd", "")) != 0) {
		matrix_plan_release(&plan);
		return error_set(err, "the matrix was begun in the folder %s: change to it first",
				 json_get_text(root, "cwd", ""));
	}
	if (take_cases(root, &plan, err) < 0) {
		matrix_plan_release(&plan);
		return -1;
	}
	*ret = plan;
	return 0;
}
