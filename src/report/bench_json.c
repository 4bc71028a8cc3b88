#include "report/bench_report.h"

#include <math.h>
#include <sys/wait.h>

#include "base/json.h"

#define OUR_SCHEMA 1

/* hyperfine's readers expect the key: null where there is no figure. */
static void put_or_null(json_t *o, const char *key, double value)
{
	json_object_set_new(o, key, isfinite(value) ? json_real(value) : json_null());
}

static json_t *numbers(const double *values, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_real(values[i]));
	return list;
}

/* Of the runs that count, as `times` is. A run that a signal ended has no status: null, as hyperfine has it. */
static void put_runs(json_t *o, const struct bench_runs *runs)
{
	json_t *peaks = json_array(), *codes = json_array();

	for (size_t i = 0; i < runs->count; i++) {
		const struct bench_run *r = &runs->items[i];

		if (!r->counts)
			continue;
		json_array_append_new(peaks, json_integer((json_int_t)r->peak_bytes));
		json_array_append_new(codes, WIFEXITED(r->status) ? json_integer(WEXITSTATUS(r->status)) : json_null());
	}
	json_object_set_new(o, "memory_usage_byte", peaks);
	json_object_set_new(o, "exit_codes", codes);
}

static void put_parameters(json_t *o, const struct bench_command *c)
{
	json_t *parameters;

	if (!c->parameter_count)
		return;
	parameters = json_object();
	for (size_t i = 0; i < c->parameter_count; i++)
		json_put_text(parameters, c->parameters[i].name, c->parameters[i].value);
	json_object_set_new(o, "parameters", parameters);
}

void bench_comparison_json(const struct bench_figures *f, json_t *o)
{
	const struct paired *p = &f->paired;

	json_put_text(o, "verdict", bench_verdict(p->verdict));
	json_put_integer(o, "pairs", (json_int_t)p->pairs);
	json_put_integer(o, "pairs_below_resolution", (json_int_t)p->unresolved);
	put_or_null(o, "ratio", p->pairs ? p->ratio : NAN);
	if (p->pairs && isfinite(p->low) && isfinite(p->high))
		json_object_set_new(o, "interval", numbers((const double[]){p->low, p->high}, 2));
	else
		json_object_set_new(o, "interval", json_null());
	json_put_bool(o, "held_back", f->held_back);
	json_put_number(o, "detectable", p->detectable);
	json_put_number(o, "pairs_needed", p->pairs_needed);
}

static void put_ours(json_t *o, const struct bench_command *c, const struct bench_figures *f)
{
	json_t *notes = json_array();

	json_put_text(o, "line", c->line);
	if (isfinite(f->low) && isfinite(f->high))
		json_object_set_new(o, "median_interval", numbers((const double[]){f->low, f->high}, 2));
	json_put_number(o, "spread", f->spread);
	if (isfinite(f->peak_bytes))
		json_put_integer(o, "peak_memory_bytes", (json_int_t)f->peak_bytes);
	json_put_number(o, "minor_faults", f->minor_faults);
	json_put_number(o, "major_faults", f->major_faults);
	json_put_number(o, "voluntary_switches", f->voluntary_switches);
	json_put_number(o, "involuntary_switches", f->involuntary_switches);
	json_put_integer(o, "attempted", (json_int_t)f->attempted);
	json_put_integer(o, "failed", (json_int_t)f->failed);
	json_put_integer(o, "timed_out", (json_int_t)f->timed_out);
	json_put_integer(o, "outliers", (json_int_t)f->outliers);
	json_put_bool(o, "below_resolution", f->below_resolution);
	for (size_t i = 0; i < f->notes.count; i++)
		json_array_append_new(notes, json_string(f->notes.texts[i]));
	json_object_set_new(o, "notes", notes);
}

static json_t *result(const struct bench *b, const struct bench_answer *a, size_t i)
{
	const struct bench_command *c = &b->commands[i];
	const struct bench_figures *f = &a->items[i];
	json_t *o = json_object();

	json_put_text(o, "command", bench_label(c));
	put_or_null(o, "mean", f->mean);
	put_or_null(o, "stddev", f->deviation);
	put_or_null(o, "median", f->median);
	put_or_null(o, "user", f->user);
	put_or_null(o, "system", f->system);
	put_or_null(o, "min", f->min);
	put_or_null(o, "max", f->max);
	json_object_set_new(o, "times", numbers(f->times, f->counted));
	put_runs(o, &c->runs);
	put_parameters(o, c);
	put_ours(o, c, f);
	if (f->compared)
		bench_comparison_json(f, o);
	return o;
}

static json_t *settings(const struct bench *b, const struct bench_answer *a)
{
	static const char *const states[] = {"ok", "failed", "interrupted"};
	json_t *o = json_object();

	json_put_integer(o, "schema", OUR_SCHEMA);
	json_put_text(o, "status", states[b->state]);
	json_put_integer(o, "reference", (json_int_t)b->reference);
	json_put_number(o, "confidence", b->confidence);
	json_put_number(o, "margin", b->margin);
	json_put_integer(o, "looks", (json_int_t)b->looks);
	json_put_integer(o, "warmup", (json_int_t)b->warmup);
	json_put_integer(o, "seed", (json_int_t)b->seed);
	json_put_text(o, "shell", b->shell);
	if (b->shell)
		json_put_number(o, "shell_startup", a->startup_s);
	json_put_number(o, "resolution", a->resolution_s);
	return o;
}

json_t *bench_json(const struct bench *b, const struct bench_answer *a)
{
	json_t *root = json_object(), *results = json_array();

	for (size_t i = 0; i < b->count; i++)
		json_array_append_new(results, result(b, a, i));
	json_object_set_new(root, "results", results);
	json_object_set_new(root, "assay", settings(b, a));
	return root;
}
