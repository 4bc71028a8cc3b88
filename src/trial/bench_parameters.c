#include "trial/bench_parameters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/parse.h"

#define DECIMALS_MAX 9
#define MAGNITUDE_MAX 1e15 /* whole numbers up to this are exact in a double */

void bench_parameters_release(struct bench_parameters *p)
{
	for (size_t i = 0; i < p->count; i++) {
		for (size_t k = 0; k < p->items[i].count; k++)
			free(p->items[i].values[k]);
		free(p->items[i].values);
		free(p->items[i].name);
	}
	free(p->items);
	*p = (struct bench_parameters){0};
}

static int add_value(struct bench_values *v, char *value, struct error *err)
{
	if (v->count == v->room) {
		size_t room = v->room ? 2 * v->room : 16;
		char **values = value ? reallocarray(v->values, room, sizeof *values) : NULL;

		if (!values) {
			free(value);
			return error_set(err, "out of memory for the values of '%.40s'", v->name);
		}
		v->values = values;
		v->room = room;
	}
	if (!value)
		return error_set(err, "out of memory for the values of '%.40s'", v->name);
	v->values[v->count++] = value;
	return 0;
}

/* A new, empty one. */
static struct bench_values *add_parameter(struct bench_parameters *p, const char *name, struct error *err)
{
	struct bench_values *items;

	if (!*name || strpbrk(name, "{}")) {
		error_set(err, "'%.40s' cannot be the name of a parameter", name);
		return NULL;
	}
	for (size_t i = 0; i < p->count; i++) {
		if (strcmp(p->items[i].name, name) == 0) {
			error_set(err, "the parameter '%.40s' is there twice", name);
			return NULL;
		}
	}
	items = reallocarray(p->items, p->count + 1, sizeof *items);
	if (items)
		p->items = items;
	if (!items || !(items[p->count] = (struct bench_values){.name = strdup(name)}).name) {
		error_set(err, "out of memory for the parameter '%.40s'", name);
		return NULL;
	}
	return &items[p->count++];
}

static int decimals_of(const char *number)
{
	const char *point = strchr(number, '.');

	return point ? (int)strspn(point + 1, "0123456789") : 0;
}

static int scaled(const char *what, const char *text, double scale, double *ret, struct error *err)
{
	double value;

	if (!parse_double(text, &value) || !(fabs(value) * scale < MAGNITUDE_MAX))
		return error_set(err, "a parameter's %s: '%.40s' is not a number that can be counted from", what, text);
	*ret = round(value * scale);
	return 0;
}

int bench_parameters_scan(struct bench_parameters *p, const char *name, const char *min, const char *max,
			  const char *step, struct error *err)
{
	int decimals = (int)fmax(fmax(decimals_of(min), decimals_of(max)), decimals_of(step ? step : "1"));
	double scale = pow(10, decimals), from = 0, to = 0, by = 0;
	struct bench_values *v;

	if (decimals > DECIMALS_MAX)
		return error_set(err, "the parameter '%.40s' has more than %d decimals", name, DECIMALS_MAX);
	if (scaled("minimum", min, scale, &from, err) < 0 || scaled("maximum", max, scale, &to, err) < 0 ||
	    scaled("step", step ? step : "1", scale, &by, err) < 0)
		return -1;
	if (by <= 0)
		return error_set(err, "the step of a parameter has to be above 0, and is %.40s", step);
	if (from > to)
		return error_set(err, "the parameter '%.40s' goes from %.40s down to %.40s; the smaller comes first",
				 name, min, max);
	if ((to - from) / by >= BENCH_VALUES_MAX)
		return error_set(err, "the parameter '%.40s' has more than %d values", name, BENCH_VALUES_MAX);
	v = add_parameter(p, name, err);
	if (!v)
		return -1;
	for (double at = from; at <= to; at += by) {
		struct buf text;

		buf_init(&text);
		buf_printf(&text, "%.*f", decimals, at / scale);
		if (add_value(v, buf_detach(&text), err) < 0)
			return -1;
	}
	return 0;
}

int bench_parameters_list(struct bench_parameters *p, const char *name, const char *values, struct error *err)
{
	struct bench_values *v = add_parameter(p, name, err);
	const char *at = values;
	bool more = true;

	while (v && more) {
		struct buf text;

		buf_init(&text);
		for (; *at && *at != ','; at++) {
			at += *at == '\\' && (at[1] == ',' || at[1] == '\\');
			buf_putc(&text, *at);
		}
		more = *at == ',';
		at += more;
		if (v->count >= BENCH_VALUES_MAX) {
			buf_release(&text);
			return error_set(err, "the parameter '%.40s' has more than %d values", name, BENCH_VALUES_MAX);
		}
		if (add_value(v, buf_detach(&text), err) < 0)
			return -1;
	}
	return v ? 0 : -1;
}

int bench_parameters_combinations(const struct bench_parameters *p, size_t *ret, struct error *err)
{
	size_t n = 1;

	for (size_t i = 0; i < p->count; i++) {
		n *= p->items[i].count;
		if (n > BENCH_VALUES_MAX)
			return error_set(err, "the parameters have more than %d combinations", BENCH_VALUES_MAX);
	}
	*ret = n;
	return 0;
}

const char *bench_parameters_value(const struct bench_parameters *p, size_t i, size_t at)
{
	for (size_t k = 0; k < i; k++)
		at /= p->items[k].count;
	return p->items[i].values[at % p->items[i].count];
}

/* The parameter whose {NAME} stands at `text`; SIZE_MAX where there is none. */
static size_t named_at(const struct bench_parameters *p, const char *text)
{
	for (size_t i = 0; i < p->count; i++) {
		size_t length = strlen(p->items[i].name);

		if (text[0] == '{' && strncmp(text + 1, p->items[i].name, length) == 0 && text[1 + length] == '}')
			return i;
	}
	return SIZE_MAX;
}

char *bench_parameters_fill(const struct bench_parameters *p, size_t at, const char *text)
{
	struct buf filled;

	buf_init(&filled);
	while (*text) {
		size_t i = named_at(p, text);

		if (i == SIZE_MAX) {
			buf_putc(&filled, *text++);
			continue;
		}
		buf_puts(&filled, bench_parameters_value(p, i, at));
		text += strlen(p->items[i].name) + 2;
	}
	return buf_detach(&filled);
}
