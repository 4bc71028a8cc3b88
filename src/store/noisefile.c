#include "store/noisefile.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/decimal.h"

#define UNTRUSTED "untrusted"
#define PHASE "phase:" /* which phases there are shows once they have run */
#define LABELS_SHOWN 8
#define RUN_MAX 1e18 /* beyond, no figure of a run can be */
#define FLOOR_PLACES 5 /* decimals of a floor, as the reference tool rounds it */

void noisefile_init(struct noisefile *n)
{
	*n = (struct noisefile){0};
}

void noisefile_release(struct noisefile *n)
{
	json_decref(n->root);
	noisefile_init(n);
}

/* The floors of one label; `label` is NULL in a flat file. */
static int check_floors(const json_t *floors, const char *path, const char *label, struct error *err)
{
	const char *metric;
	json_t *value;

	json_object_foreach((json_t *)floors, metric, value) {
		double floor = json_is_number(value) ? json_number_value(value) : NAN;

		if (floor >= 0 || (strcmp(metric, UNTRUSTED) == 0 && json_is_boolean(value)))
			continue;
		return error_set(err, "%s: %s%s\"%s\" has no number of 0 or more as its floor", path,
				 label ? label : "", label ? ": " : "", metric);
	}
	return 0;
}

int noisefile_read(const char *path, struct noisefile *ret, struct error *err)
{
	CLEANUP(json_cleanup) json_t *root = json_read_file(path, err);
	size_t objects = 0;
	const char *label;
	json_t *floors;

	if (!root)
		return -1;
	if (!json_is_object(root))
		return error_set(err, "%s: expected an object: {LABEL: {METRIC: FLOOR}}", path);
	json_object_foreach(root, label, floors)
		objects += json_is_object(floors);
	if (objects == 0 && check_floors(root, path, NULL, err) < 0)
		return -1;
	json_object_foreach(root, label, floors) {
		if (objects > 0 && !json_is_object(floors))
			return error_set(err, "%s: \"%s\" is no object of floors, as other labels are", path, label);
		if (objects > 0 && check_floors(floors, path, label, err) < 0)
			return -1;
	}
	*ret = (struct noisefile){.root = json_incref(root), .flat = objects == 0};
	return 0;
}

const char *noisefile_only_label(const struct noisefile *n)
{
	return !n->flat && json_object_size(n->root) == 1 ? json_object_iter_key(json_object_iter(n->root)) : NULL;
}

static const json_t *floors_of(const struct noisefile *n, const char *label)
{
	if (n->flat)
		return n->root;
	return label ? json_object_get(n->root, label) : NULL;
}

bool noisefile_floors(const struct noisefile *n, const char *label, const struct metric_set *metrics, double *floors)
{
	const json_t *found = floors_of(n, label);

	for (size_t i = 0; i < metrics->count; i++)
		floors[i] = json_get_number(found, metrics->items[i].name, NAN);
	return found != NULL;
}

bool noisefile_knows(const struct noisefile *n, const char *label)
{
	return floors_of(n, label) != NULL;
}

bool noisefile_trusted(const struct noisefile *n, const char *label)
{
	return !json_is_true(json_object_get(floors_of(n, label), UNTRUSTED));
}

void noisefile_unknown(const struct noisefile *n, const char *label, const struct metric_set *metrics, const char *path,
		       struct warnings *notes)
{
	const char *name;
	json_t *floor;

	json_object_foreach((json_t *)floors_of(n, label), name, floor)
		if (strcmp(name, UNTRUSTED) != 0 && strncmp(name, PHASE, strlen(PHASE)) != 0 &&
		    metric_find(metrics, name) == SIZE_MAX)
			warnings_add(notes, "%s: \"%s\" is no metric, so its floor counts for nothing", path, name);
}

char *noisefile_labels(const struct noisefile *n)
{
	CLEANUP(buf_release) struct buf text;
	size_t count = 0;
	const char *label;
	json_t *floors;

	buf_init(&text);
	json_object_foreach(n->root, label, floors) {
		if (count < LABELS_SHOWN)
			buf_printf(&text, "%s%s", count ? ", " : "", label);
		count++;
	}
	if (count > LABELS_SHOWN)
		buf_printf(&text, " and %zu more", count - LABELS_SHOWN);
	return buf_detach(&text);
}

/* A side's runs, as far as they have been seen. */
struct spread {
	double sum, least, most;
	size_t count;
};

static int add_runs(const json_t *runs, struct spread *s)
{
	const json_t *run;
	size_t i;

	if (runs && !json_is_array(runs))
		return -1;
	json_array_foreach(runs, i, run) {
		double value = json_is_number(run) ? json_number_value(run) : NAN;

		if (!(value >= 0 && value <= RUN_MAX))
			return -1;
		s->sum += value;
		s->least = s->count ? fmin(s->least, value) : value;
		s->most = s->count ? fmax(s->most, value) : value;
		s->count++;
	}
	return 0;
}

static json_t *floors_from(const json_t *metrics, const char *path, const char *label, struct error *err)
{
	CLEANUP(json_cleanup) json_t *floors = json_object();
	const char *name;
	json_t *metric;

	json_object_foreach((json_t *)metrics, name, metric) {
		struct spread s = {0};
		double mean;

		if (add_runs(json_object_get(metric, "a_runs"), &s) < 0 ||
		    add_runs(json_object_get(metric, "b_runs"), &s) < 0) {
			error_set(err, "%s: case \"%s\": the runs of \"%s\" are no numbers of 0 or more", path, label,
				  name);
			return NULL;
		}
		mean = s.sum / (double)s.count;
		if (s.count > 0 && mean > 0)
			json_put_number(floors, name, decimal_round((s.most - s.least) / mean, FLOOR_PLACES));
	}
	return json_incref(floors);
}

/* Undecided is no difference that was found. */
static bool found_difference(const char *verdict)
{
	return strcmp(verdict, "neutral") != 0 && strcmp(verdict, "undecided") != 0;
}

static int add_case(const json_t *one, size_t number, const char *path, json_t *root, struct warnings *notes,
		    struct error *err)
{
	const char *label = json_get_text(one, "label", NULL), *skipped = json_get_text(one, "skipped", NULL);
	const json_t *metrics = json_object_get(one, "metrics");
	const char *verdict = json_get_text(one, "verdict", "");
	json_t *floors;

	if (!label)
		return error_set(err, "%s: case %zu has no \"label\"", path, number);
	if (!metrics) {
		warnings_add(notes, "%s: no floors: it was not measured%s%s.", label, skipped ? ": " : "",
			     skipped ? skipped : "");
		return 0;
	}
	if (!json_is_object(metrics))
		return error_set(err, "%s: case \"%s\": \"metrics\" is no object", path, label);
	if (json_object_get(root, label))
		return error_set(err, "%s: two cases are labelled \"%s\"", path, label);
	floors = floors_from(metrics, path, label, err);
	if (!floors)
		return -1;
	if (found_difference(verdict)) {
		json_put_bool(floors, UNTRUSTED, true);
		warnings_add(notes,
			     "%s: not to be trusted: with the same build on both sides its verdict is \"%s\", so "
			     "something else differed, or it was chance; measure it again.",
			     label, *verdict ? verdict : "missing");
	}
	if (json_object_size(floors) == 0)
		warnings_add(notes, "%s: no floors: it has no runs with figures.", label);
	json_object_set_new(root, label, floors);
	return 0;
}

json_t *noisefile_from_matrix(const json_t *matrix, const char *path, struct warnings *notes, struct error *err)
{
	CLEANUP(json_cleanup) json_t *root = json_object();
	const json_t *cases = json_object_get(matrix, "cases"), *one;
	size_t i, known = 0;

	if (!json_is_array(cases)) {
		error_set(err, "%s: it is no matrix.json: it has no list of \"cases\"", path);
		return NULL;
	}
	if (json_is_false(json_object_get(matrix, "null")))
		warnings_add(notes, "%s: its two sides were not the same: what they differ by is in these floors too.",
			     path);
	if (json_is_false(json_object_get(matrix, "complete")))
		warnings_add(notes, "%s: the matrix is not complete: floors of fewer runs are too low.", path);
	json_array_foreach(cases, i, one) {
		if (add_case(one, i + 1, path, root, notes, err) < 0)
			return NULL;
		known += json_object_get(one, "metrics") || json_object_get(one, "skipped");
	}
	if (!known) {
		error_set(err,
			  "%s: none of its cases has \"metrics\" or \"skipped\": there is nothing to make floors of",
			  path);
		return NULL;
	}
	return json_incref(root);
}
