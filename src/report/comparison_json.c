/* A comparison as JSON: the reference's keys with its rounding, and without `reference` ours as well. */
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/decimal.h"
#include "report/comparison.h"

#define PLACES 4 /* to which the reference rounds means and ratios */

static json_t *number_or_null(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *runs_json(const double *values, size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(array, json_real(values[i]));
	return array;
}

static json_t *paired_json(const struct compare_metric *m)
{
	const struct paired *p = &m->paired;
	json_t *o = json_object();

	json_put_text(o, "verdict", paired_verdict_name(p->verdict));
	json_put_integer(o, "pairs", (json_int_t)p->pairs);
	json_put_integer(o, "unresolved", (json_int_t)p->unresolved);
	json_put_number(o, "ratio", p->ratio);
	json_put_number(o, "low", p->low);
	json_put_number(o, "high", p->high);
	json_put_number(o, "equivalence_low", p->equivalence_low);
	json_put_number(o, "equivalence_high", p->equivalence_high);
	json_put_number(o, "confidence", p->confidence);
	json_put_number(o, "p_no_difference", p->p);
	json_put_number(o, "p_beyond_margin_adjusted", m->p_adjusted);
	json_put_number(o, "detectable", p->detectable);
	json_put_number(o, "pairs_needed", p->pairs_needed);
	return o;
}

/* The word of the rule that decided. */
static const char *verdict_of(const struct comparison *c, const struct compare_metric *m)
{
	bool by_pairs = c->rule == RULE_PAIRED && m->separation != SEPARATION_MISSING && !m->by_difference;

	return by_pairs ? paired_verdict_name(m->paired.verdict) : separation_verdict_name(m->separation);
}

static json_t *metric_json(const struct comparison_view *v, const struct compare_metric *m)
{
	const struct metric_desc *desc = &v->metrics->items[m->metric];
	json_t *o = json_object();

	json_object_set_new(o, "a", number_or_null(decimal_round(m->a_mean, PLACES)));
	json_object_set_new(o, "b", number_or_null(decimal_round(m->b_mean, PLACES)));
	json_object_set_new(o, "ratio", number_or_null(decimal_round(m->ratio, PLACES)));
	json_put_text(o, "verdict", verdict_of(v->comparison, m));
	json_object_set_new(o, "a_runs", runs_json(m->a, m->a_count));
	json_object_set_new(o, "b_runs", runs_json(m->b, m->b_count));
	if (v->reference)
		return o;
	json_put_text(o, "unit", desc->unit);
	json_put_bool(o, "larger_is_better", desc->direction > 0);
	json_put_bool(o, "gated", m->gated);
	json_put_number(o, "a_mean", m->a_mean);
	json_put_number(o, "b_mean", m->b_mean);
	json_put_number(o, "difference", m->difference);
	json_put_number(o, "margin", m->margin);
	json_put_text(o, "separation", separation_verdict_name(m->separation));
	json_object_set_new(o, "paired", paired_json(m));
	json_put_integer(o, "outliers", (json_int_t)m->outliers);
	json_put_bool(o, "bimodal_a", m->bimodal_a);
	json_put_bool(o, "bimodal_b", m->bimodal_b);
	return o;
}

/* Names of the metrics that count and of which the deciding rule says this word. */
static json_t *names_json(const struct comparison_view *v, const char *verdict)
{
	json_t *array = json_array();

	for (size_t i = 0; i < v->comparison->count; i++) {
		const struct compare_metric *m = &v->comparison->metrics[i];

		if (m->gated && strcmp(verdict_of(v->comparison, m), verdict) == 0)
			json_array_append_new(array, json_string(v->metrics->items[m->metric].name));
	}
	return array;
}

static void put_sentence(void *context, enum sentence_kind kind, const char *sentence)
{
	static const char *const keys[] = {
		[SENTENCE_DECIDED] = "decided", [SENTENCE_OPEN] = "open", [SENTENCE_NOTE] = "notes"};

	json_array_append_new(json_object_get(context, keys[kind]), json_text(sentence, strlen(sentence)));
}

static void put_ours(json_t *root, const struct comparison_view *v)
{
	const struct comparison *c = v->comparison;
	json_t *labels = json_object();

	json_put_text(root, "rule", c->rule == RULE_PAIRED ? "paired" : "separation");
	json_put_text(root, "by_separation", overall_verdict_name(c->by_separation));
	json_put_bool(root, "interleaved", c->interleaved);
	json_put_bool(root, "same_runs", c->same_runs);
	json_put_integer(root, "pairs", (json_int_t)c->pairs);
	json_put_number(root, "confidence", v->confidence);
	json_put_text(labels, "a", v->a);
	json_put_text(labels, "b", v->b);
	json_object_set_new(root, "labels", labels);
	json_put_integer(root, "attempted_a", (json_int_t)c->attempted_a);
	json_put_integer(root, "attempted_b", (json_int_t)c->attempted_b);
	json_put_integer(root, "usable_a", (json_int_t)c->usable_a);
	json_put_integer(root, "usable_b", (json_int_t)c->usable_b);
	json_object_set_new(root, "decided", json_array());
	json_object_set_new(root, "open", json_array());
	json_object_set_new(root, "notes", json_array());
	comparison_sentences(v, put_sentence, root);
}

json_t *comparison_json(const struct comparison_view *v)
{
	const struct comparison *c = v->comparison;
	json_t *root = json_object(), *metrics = json_object();

	for (size_t i = 0; i < c->count; i++)
		if (c->metrics[i].separation != SEPARATION_MISSING)
			json_object_set_new(metrics, v->metrics->items[c->metrics[i].metric].name,
					    metric_json(v, &c->metrics[i]));
	json_object_set_new(root, "metrics", metrics);
	json_put_integer(root, "dropped_runs", (json_int_t)c->dropped);
	if (c->dirty)
		json_put_integer(root, "dirty_runs", (json_int_t)c->dirty);
	json_object_set_new(root, "worse", names_json(v, "worse"));
	json_object_set_new(root, "better", names_json(v, "better"));
	json_put_text(root, "verdict", overall_verdict_name(c->overall));
	if (!v->reference)
		put_ours(root, v);
	return root;
}

static void print_value(const json_t *value, size_t depth, struct buf *out);

/* The members of an array or object stand each on a line of its own, indented by 1. */
static void next_line(size_t depth, struct buf *out)
{
	buf_printf(out, "\n%*s", (int)depth, "");
}

static void print_members(const json_t *object, size_t depth, struct buf *out)
{
	const char *key;
	json_t *value;
	bool first = true;

	json_object_foreach((json_t *)object, key, value) {
		CLEANUP(json_cleanup) json_t *name = json_string(key);

		buf_puts(out, first ? "" : ",");
		first = false;
		next_line(depth + 1, out);
		print_value(name, depth, out);
		buf_puts(out, ": ");
		print_value(value, depth + 1, out);
	}
}

static void print_value(const json_t *value, size_t depth, struct buf *out)
{
	CLEANUP(free_cleanup) char *text = NULL;
	const json_t *item;
	size_t i;

	if (json_is_real(value)) {
		buf_puts(out, decimal_shortest(json_real_value(value)).text);
	} else if (json_is_object(value) && json_object_size(value)) {
		buf_putc(out, '{');
		print_members(value, depth, out);
		next_line(depth, out);
		buf_putc(out, '}');
	} else if (json_is_array(value) && json_array_size(value)) {
		buf_putc(out, '[');
		json_array_foreach(value, i, item) {
			buf_puts(out, i ? "," : "");
			next_line(depth + 1, out);
			print_value(item, depth + 1, out);
		}
		next_line(depth, out);
		buf_putc(out, ']');
	} else {
		text = json_dumps(value, JSON_ENCODE_ANY);
		out->failed |= !text;
		buf_puts(out, text ? text : "");
	}
}

void comparison_print_json(const json_t *root, struct buf *out)
{
	print_value(root, 0, out);
	buf_putc(out, '\n');
}
