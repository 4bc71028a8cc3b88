#include "report/hotspots.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/table.h"
#include "base/units.h"
#include "base/utf8.h"
#include "base/wrap.h"
#include "report/hotspot_words.h"

#define COLUMNS_UNSEEN 120
#define NOISE_SHOWN 10
#define LABEL_COLUMNS 70
#define MODULE_COLUMNS 20
#define NAME_LEAST 18

static void put_side(const struct profile_changes *c, int side, const char *label, struct buf *out)
{
	buf_printf(out, "%c: ", side ? 'B' : 'A');
	hotspot_words_name(out, label, LABEL_COLUMNS);
	buf_printf(out, ", %s of CPU time in %s sample%s\n", units_seconds(c->all_cpu_s[side]).text,
		   units_count((double)c->deliveries[side]).text, c->deliveries[side] == 1 ? "" : "s");
}

/* What stands in the way of any comparison; false: nothing does. */
static bool put_hindrance(const struct profile_changes *c, struct buf *out)
{
	bool has[2] = {c->deliveries[0] > 0, c->deliveries[1] > 0};

	if (!c->too_few)
		return false;
	if (!has[0] && !has[1])
		buf_puts(out, "\nA and B have no samples: nothing can be compared.\n");
	else if (!has[0] || !has[1])
		buf_printf(out, "\n%c has no samples: nothing can be compared.\n", has[0] ? 'B' : 'A');
	else if (c->only[0] && c->only[1] && !c->count)
		buf_puts(out, "\nThey have no phase group in common: nothing can be compared.\n");
	else
		buf_printf(out, "\nToo few samples to compare: %.0f and %.0f; under 30 on a side show nothing.\n",
			   ceil(c->n[0]), ceil(c->n[1]));
	return true;
}

static bool several_groups(const struct profile_changes *c)
{
	for (size_t i = 1; i < c->count; i++)
		if (strcmp(c->items[i].group, c->items[0].group) != 0)
			return true;
	return false;
}

static void name_cell(struct table *t, const char *name, size_t columns)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	hotspot_words_name(&text, name, columns);
	table_cell(t, "%s", text.text);
}

/* What prints as 0 is no -0. */
static double shown(double value, int digits)
{
	double scale = pow(10, digits);

	return round(value * scale) / scale + 0.0;
}

/* "+5.0 (+2.1 to +7.9)": a difference and its interval. */
static void difference_cell(struct table *t, double difference, double low, double high, int digits)
{
	if (isnan(low))
		table_cell(t, "%+.*f", digits, shown(difference, digits));
	else
		table_cell(t, "%+.*f (%+.*f to %+.*f)", digits, shown(difference, digits), digits, shown(low, digits),
			   digits, shown(high, digits));
}

static void figure_cells(struct table *t, const struct profile_change *c)
{
	table_cell(t, "%.1f%%", 100 * c->share[0]);
	table_cell(t, "%.1f%%", 100 * c->share[1]);
	difference_cell(t, 100 * (c->share[1] - c->share[0]), 100 * c->low, 100 * c->high, 1);
	difference_cell(t, c->cpu_s[1] - c->cpu_s[0], c->cpu_low, c->cpu_high, 2);
}

static void head(struct table *t, bool groups, bool names)
{
	table_cell(t, "A");
	table_cell(t, "B");
	table_cell(t, "points");
	table_cell(t, "CPU s");
	if (groups)
		table_cell(t, "group");
	table_cell(t, "%s", names ? "function" : "");
}

/* How many columns the name has: what the figures of these rows leave. */
static size_t room_for_names(const struct profile_change *items, size_t count, bool groups, size_t columns)
{
	CLEANUP(table_release) struct table t;
	size_t used = 2;

	table_init(&t, groups ? 6 : 5);
	head(&t, groups, false);
	for (size_t i = 0; i < count; i++) {
		figure_cells(&t, &items[i]);
		if (groups)
			table_cell(&t, "%s", items[i].group);
		table_cell(&t, "%s", "");
	}
	for (size_t i = 0; i + 1 < t.columns; i++)
		used += t.widths[i] + 2;
	return columns > used + NAME_LEAST ? columns - used : NAME_LEAST;
}

static void put_rows(const struct profile_change *items, size_t count, bool groups, size_t columns, struct buf *out)
{
	CLEANUP(table_release) struct table t;
	size_t room = room_for_names(items, count, groups, columns);

	table_init(&t, groups ? 6 : 5);
	head(&t, groups, true);
	for (size_t i = 0; i < count; i++) {
		CLEANUP(buf_release) struct buf name;
		size_t module = 0;

		buf_init(&name);
		if (items[i].module && room > NAME_LEAST + MODULE_COLUMNS) {
			buf_puts(&name, " (");
			hotspot_words_name(&name, items[i].module, MODULE_COLUMNS);
			buf_putc(&name, ')');
			module = wrap_width(name.text);
		}
		figure_cells(&t, &items[i]);
		if (groups)
			table_cell(&t, "%s", items[i].group);
		buf_clear(&name);
		hotspot_words_name(&name, items[i].name, room - module);
		if (module) {
			buf_puts(&name, " (");
			hotspot_words_name(&name, items[i].module, MODULE_COLUMNS);
			buf_putc(&name, ')');
		}
		name_cell(&t, name.text, SIZE_MAX);
	}
	table_print(&t, groups ? "rrrrll" : "rrrrl", "  ", out);
}

static void put_only(const struct profile_changes *c, struct buf *out)
{
	for (int side = 0; side < 2; side++)
		if (c->only[side])
			buf_printf(out, "Only %c has samples of: %s; they are not compared.\n", side ? 'B' : 'A',
				   c->only[side]);
}

void profile_changes_print(const struct profile_changes *c, const char *a, const char *b, bool colour,
			   unsigned columns, struct buf *out)
{
	size_t width = columns ? columns : COLUMNS_UNSEEN, noise = c->count - c->changed;
	size_t few = noise < NOISE_SHOWN ? noise : NOISE_SHOWN;
	bool groups = several_groups(c);
	const char *bold = colour ? "\033[1m" : "", *plain = colour ? "\033[0m" : "";
	CLEANUP(buf_release) struct buf line;

	buf_init(&line);
	put_side(c, 0, a, out);
	put_side(c, 1, b, out);
	if (c->count || (c->only[0] && c->only[1]))
		put_only(c, out);
	if (put_hindrance(c, out))
		return;
	buf_printf(out, "\n%sChanged beyond what the samples can support%s\n", bold, plain);
	if (c->changed)
		put_rows(c->items, c->changed, groups, width, out);
	else
		buf_puts(out, "  nothing\n");
	buf_printf(out, "\n%sWithin noise%s: %zu\n", bold, plain, noise);
	if (few)
		put_rows(c->items + c->changed, few, groups, width, out);
	if (noise > few)
		buf_printf(out, "  ... and %zu more; --json has them all\n", noise - few);
	buf_printf(&line,
		   "Intervals are simultaneous over the %zu that have samples enough (a row without one has too few "
		   "to be compared), at %.4g%%. They hold what the "
		   "number of samples leaves open, not what one run differs from the next for other reasons: "
		   "where that matters, compare runs (assay diff) or profiles of several runs.",
		   c->compared, 100 * c->confidence);
	buf_puts(out, "\n");
	wrap_append(out, line.text, 0, 0, width);
}

static json_t *change_json(const struct profile_change *c)
{
	json_t *o = json_object();
	static const char *const share[] = {"share_a", "share_b"}, *const cpu[] = {"cpu_s_a", "cpu_s_b"};

	json_put_text(o, "name", c->name);
	json_put_text(o, "module", c->module);
	json_put_text(o, "group", c->group);
	for (int side = 0; side < 2; side++) {
		json_put_number(o, share[side], c->share[side]);
		json_put_number(o, cpu[side], c->cpu_s[side]);
	}
	json_put_number(o, "share_change", c->share[1] - c->share[0]);
	json_put_number(o, "share_change_low", c->low);
	json_put_number(o, "share_change_high", c->high);
	json_put_number(o, "cpu_s_change", c->cpu_s[1] - c->cpu_s[0]);
	json_put_number(o, "cpu_s_change_low", c->cpu_low);
	json_put_number(o, "cpu_s_change_high", c->cpu_high);
	json_put_bool(o, "compared", c->compared);
	json_put_bool(o, "share_changed", c->share_changed);
	json_put_bool(o, "cpu_changed", c->cpu_changed);
	return o;
}

static json_t *side_json(const struct profile_changes *c, int side, const char *label)
{
	json_t *o = json_object();

	json_put_text(o, "path", label);
	json_put_number(o, "effective", c->n[side]);
	json_put_number(o, "cpu_s", c->cpu_s[side]);
	json_put_integer(o, "deliveries", (json_int_t)c->deliveries[side]);
	json_put_number(o, "all_cpu_s", c->all_cpu_s[side]);
	json_put_text(o, "lone_groups", c->only[side]);
	return o;
}

json_t *profile_changes_json(const struct profile_changes *c, const char *a, const char *b)
{
	json_t *root = json_object(), *changed = json_array(), *noise = json_array();

	if (!root || !changed || !noise) {
		json_decref(root);
		json_decref(changed);
		json_decref(noise);
		return NULL;
	}
	for (size_t i = 0; i < c->count; i++)
		json_array_append_new(i < c->changed ? changed : noise, change_json(&c->items[i]));
	json_put_number(root, "confidence", c->confidence);
	json_put_bool(root, "too_few", c->too_few);
	json_put_integer(root, "compared", (json_int_t)c->compared);
	json_object_set_new(root, "a", side_json(c, 0, a));
	json_object_set_new(root, "b", side_json(c, 1, b));
	json_object_set_new(root, "changed", changed);
	json_object_set_new(root, "within_noise", noise);
	return root;
}
