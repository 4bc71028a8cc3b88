#include "judge/wording.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void say(struct limit *l, const char *format, ...)
{
	size_t used = strlen(l->why);
	va_list args;

	va_start(args, format);
	vsnprintf(l->why + used, sizeof l->why - used, format, args);
	va_end(args);
}

void evidence_add(struct evidence *list, size_t *count, const char *name, double value)
{
	if (*count < EVIDENCE_MAX && isfinite(value))
		list[(*count)++] = (struct evidence){name, value};
}

void note(struct limit *l, const char *name, double value)
{
	evidence_add(l->evidence, &l->evidence_count, name, value);
}

struct units_text wording_rate(double bytes_per_s)
{
	struct units_text text = units_bytes(bytes_per_s);

	snprintf(text.text + strlen(text.text), sizeof text.text - strlen(text.text), "/s");
	return text;
}

struct units_text wording_cores(double count)
{
	struct units_text text;

	if (!isfinite(count))
		snprintf(text.text, sizeof text.text, "an unknown number of cores");
	else
		snprintf(text.text, sizeof text.text, "%.2f core%s", count, count >= 0.995 && count < 1.005 ? "" : "s");
	return text;
}
