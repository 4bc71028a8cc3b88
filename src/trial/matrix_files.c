#include "trial/matrix_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "report/comparison.h"
#include "store/armfile.h"

#define SCHEMA "assay-matrix-1"
#define SAME_SECOND_MAX 1000

static int make_default(char **ret_folder, struct error *err)
{
	time_t now = time(NULL);
	struct tm tm;

	if (!localtime_r(&now, &tm) || fs_make_dirs("assay-runs", err) < 0)
		return -1;
	for (int number = 1; number <= SAME_SECOND_MAX; number++) {
		CLEANUP(buf_release) struct buf name;

		buf_init(&name);
		buf_printf(&name, "assay-runs/%04d-%02d-%02dT%02d-%02d-%02d-matrix", tm.tm_year + 1900, tm.tm_mon + 1,
			   tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
		if (number > 1)
			buf_printf(&name, "-%d", number);
		if (mkdir(name.text, 0777) == 0) {
			*ret_folder = buf_detach(&name);
			return *ret_folder ? 0 : error_set(err, "out of memory for the folder's name");
		}
		if (errno != EEXIST)
			return error_set(err, "%s: the matrix cannot be kept there: %s", name.text, strerror(errno));
	}
	return error_set(err, "assay-runs holds too many matrices of this second");
}

int matrix_make_folder(const char *folder, char **ret_folder, struct error *err)
{
	int empty;

	if (!folder)
		return make_default(ret_folder, err);
	if (!*folder)
		return error_set(err, "--out: the folder's name is empty");
	if (fs_make_dirs(folder, err) < 0)
		return -1;
	empty = fs_dir_is_empty(folder, err);
	if (empty < 0)
		return -1;
	if (!empty)
		return error_set(err,
				 "%s: exists and is not empty; `assay matrix --resume %s` goes on with a matrix in it",
				 folder, folder);
	*ret_folder = strdup(folder);
	return *ret_folder ? 0 : error_set(err, "out of memory for the folder's name");
}

static json_t *arm_json(const struct matrix_arm *arm)
{
	json_t *object = json_object();

	json_put_text(object, "side", arm->side ? "B" : "A");
	json_put_integer(object, "block", arm->block);
	json_put_integer(object, "arm", arm->position);
	json_put_text(object, "status", arm->status);
	json_put_text(object, "dir", arm->folder);
	if (*arm->why)
		json_put_text(object, "why", arm->why);
	return object;
}

/* An arm that has no run.json: it is counted as attempted, and has no values. */
static int add_without_values(struct arms *arms, const struct matrix_arm *arm, const char *label)
{
	struct arm *added = arms_add(arms);

	if (!added)
		return -1;
	added->source = strdup(label);
	added->status = strdup(arm->status);
	added->state = strcmp(arm->status, "refused") == 0 ? ARM_REFUSED : ARM_FAILED;
	added->block = arm->block;
	added->position = arm->position;
	return added->source && added->status ? 0 : -1;
}

static bool has_run_json(const struct matrix_arm *arm)
{
	return arm->folder && strcmp(arm->status, "lost") != 0;
}

int matrix_take_arm(struct matrix *m, struct matrix_case_result *r, const struct matrix_arm *arm, struct error *err)
{
	struct arms *arms = &r->sides[arm->side];
	CLEANUP(free_cleanup) char *path = has_run_json(arm) ? fs_join(m->folder, arm->folder) : NULL;
	struct arm *added;

	if (has_run_json(arm)) {
		if (!path || armfile_read(path, &m->metrics, arms, err) < 0)
			return path ? -1 : error_set(err, "out of memory for an arm");
	} else if (add_without_values(arms, arm, r->what->label) < 0) {
		return error_set(err, "out of memory for an arm");
	}
	added = &arms->items[arms->count - 1];
	added->block = arm->block;
	added->position = arm->position;
	r->refused += added->state == ARM_REFUSED;
	r->failed += added->state == ARM_FAILED || added->state == ARM_PERTURBED;
	json_array_append_new(r->arms, arm_json(arm));
	return 0;
}

void matrix_case_json(const struct matrix *m, struct matrix_case_result *r)
{
	struct comparison_view view = {
		.comparison = &r->comparison,
		.metrics = &m->metrics,
		.a = m->plan.sides[0].name,
		.b = m->plan.sides[1].name,
		.confidence = m->plan.confidence,
		.reference = matrix_is_reference(m),
	};
	json_t *object = r->has_comparison ? comparison_json(&view) : json_object();

	json_put_text(object, "label", r->what->label);
	if (r->skipped)
		json_put_text(object, "skipped", r->skipped);
	else
		json_object_set(object, "arms", r->arms);
	json_put_bool(object, "done", r->done);
	json_decref(r->json);
	r->json = object;
}

json_t *matrix_json(const struct matrix *m)
{
	json_t *root = json_object(), *cases = json_array();
	struct matrix_view view = {.trusted = true};

	free(matrix_rows(m, &view));
	json_put_text(root, "schema", SCHEMA);
	json_put_text(root, "a", m->plan.sides[0].name);
	json_put_text(root, "b", m->plan.sides[1].name);
	json_put_text(root, "order", m->plan.order);
	json_put_integer(root, "seed", m->plan.seed);
	json_put_integer(root, "pairs", (json_int_t)m->plan.pairs);
	json_put_bool(root, "until_decided", m->plan.until_decided);
	json_put_bool(root, "complete", matrix_is_complete(m));
	json_put_bool(root, "null", m->null);
	if (m->null)
		json_put_bool(root, "trusted", view.trusted);
	for (size_t i = 0; i < m->plan.cases.count; i++)
		if (m->results[i].json)
			json_array_append(cases, m->results[i].json);
	json_object_set_new(root, "cases", cases);
	return root;
}

int matrix_write_json(const struct matrix *m, struct error *err)
{
	CLEANUP(json_cleanup) json_t *root = matrix_json(m);
	CLEANUP(free_cleanup) char *path = fs_join(m->folder, "matrix.json");
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	if (root && path)
		comparison_print_json(root, &text);
	if (!root || !path || text.failed || !text.length)
		return error_set(err, "%s/matrix.json: out of memory", m->folder);
	return fs_write_file(path, text.text, text.length, err);
}

int matrix_write_table(const struct matrix *m, struct error *err)
{
	struct matrix_view view;
	CLEANUP(free_cleanup) struct matrix_row *rows = matrix_rows(m, &view);
	CLEANUP(free_cleanup) char *path = fs_join(m->folder, "table.md");
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	if (rows)
		matrix_table_markdown(&view, &text);
	if (!rows || !path || text.failed)
		return error_set(err, "%s/table.md: out of memory", m->folder);
	return fs_write_file(path, text.text, text.length, err);
}

static int bad_arm(const char *path, const char *label, struct error *err)
{
	return error_set(err, "%s: the arms of case '%.60s' are none of this plan", path, label);
}

/* The names stand in a file that anybody may have changed: nothing outside the matrix's folder is read. */
static bool is_inside(const char *folder)
{
	return *folder && *folder != '/' && strcmp(folder, "..") != 0 && strncmp(folder, "../", 3) != 0 &&
	       !strstr(folder, "/../");
}

/* A place in the design; -1 where it can be none. */
static int place(const json_t *object, const char *key)
{
	double value = json_get_number(object, key, -1);

	return value >= 0 && value <= 1e9 ? (int)value : -1;
}

static int load_arm(struct matrix *m, struct matrix_case_result *r, const json_t *object, const char *path,
		    struct error *err)
{
	const char *side = json_get_text(object, "side", ""), *folder = json_get_text(object, "dir", NULL);
	const char *status = json_get_text(object, "status", ""), *why = json_get_text(object, "why", "");
	struct matrix_arm arm = {
		.side = strcmp(side, "B") == 0,
		.block = place(object, "block"),
		.position = place(object, "arm"),
	};
	int failed;

	if ((strcmp(side, "A") != 0 && strcmp(side, "B") != 0) || (folder && !is_inside(folder)) || arm.block < 0 ||
	    arm.position < 0)
		return bad_arm(path, r->what->label, err);
	snprintf(arm.status, sizeof arm.status, "%s", status);
	snprintf(arm.why, sizeof arm.why, "%s", why);
	arm.folder = folder ? strdup(folder) : NULL;
	failed = matrix_take_arm(m, r, &arm, err);
	free(arm.folder);
	return failed;
}

static struct matrix_case_result *result_of(const struct matrix *m, const char *label)
{
	for (size_t i = 0; label && i < m->plan.cases.count; i++)
		if (strcmp(m->results[i].what->label, label) == 0)
			return &m->results[i];
	return NULL;
}

static int load_case(struct matrix *m, const json_t *object, const char *path, struct error *err)
{
	struct matrix_case_result *r = result_of(m, json_get_text(object, "label", NULL));
	const json_t *list = json_object_get(object, "arms"), *arm;
	size_t i;

	if (!r || !r->selected || json_array_size(r->arms))
		return error_set(err, "%s: it has a case that is none of this plan", path);
	if (json_array_size(list) > m->plan.pairs * 2 + 1)
		return bad_arm(path, r->what->label, err);
	json_array_foreach(list, i, arm)
	{
		if (strcmp(json_get_text(arm, "status", ""), "interrupted") == 0)
			break;
		if (load_arm(m, r, arm, path, err) < 0)
			return -1;
	}
	r->done = json_is_true(json_object_get(object, "done"));
	return 0;
}

int matrix_load(struct matrix *m, struct error *err)
{
	CLEANUP(free_cleanup) char *path = fs_join(m->folder, "matrix.json");
	CLEANUP(json_cleanup) json_t *root = NULL;
	const json_t *object, *list;
	size_t i;

	if (!path)
		return error_set(err, "out of memory for the folder's name");
	if (!fs_exists(path))
		return 0;
	root = json_read_file(path, err);
	if (!root)
		return -1;
	list = json_object_get(root, "cases");
	json_array_foreach(list, i, object)
		if (load_case(m, object, path, err) < 0)
			return -1;
	return 0;
}
