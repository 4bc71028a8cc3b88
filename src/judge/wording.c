#include "judge/wording.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
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

void note_cpu(const struct phase_facts *p, struct limit *l)
{
	note(l, "cores", p->cores);
	note(l, "cpus", p->cpus);
	note(l, "busiest_thread_share", p->busiest);
	note(l, "busy_threads", p->busy_threads);
	note(l, "waiting_share", p->wait_share);
	note(l, "others_cores", p->others);
	note(l, "pressure_cpu_some", p->psi_cpu);
	note(l, "kernel_share", p->in_kernel);
}

void say_short_of_memory(const struct phase_facts *p, struct limit *l)
{
	note(l, "memory_limit_mib", p->f->memory_limit / 1048576);
	if (p->f->memory_limit < p->run->memory_bytes)
		say(l, "Memory is short under the control group's limit of %s: ", units_bytes(p->f->memory_limit).text);
	else
		say(l, "Host RAM is short: ");
}

void say_peak(const struct phase_facts *p, struct limit *l)
{
	bool two = p->run->bandwidth[0].one > 0 && p->run->bandwidth[1].one > 0;
	const struct bandwidth *b = &p->run->bandwidth[p->run->bandwidth[1].one > 0];

	note(l, "peak_low_gb_per_s", p->peak_low / 1e9);
	note(l, "peak_high_gb_per_s", p->peak_high / 1e9);
	if (two && p->peak_high - p->peak_low > 0.02 * p->peak_high)
		say(l, "%.1f to %.1f GB/s", p->peak_low / 1e9, p->peak_high / 1e9);
	else
		say(l, "%.1f GB/s", p->peak_high / 1e9);
	say(l, " that %s can read here (measured %s, rounds within %s)",
	    p->peak_threads > 1 ? "as many threads" : "one thread", two ? "before and after" : "once",
	    units_percent(p->peak_threads > 1 ? b->all_spread : b->one_spread).text);
}

void say_missing(const struct phase_facts *p, struct limit *l)
{
	const char *names[PHASE_FACTS_WANTED];
	size_t count = phase_facts_missing(p, names);

	if (count == 0)
		say(l, " All counters that the rules ask for were there.");
	for (size_t i = 0; i < count; i++)
		say(l, "%s%s%s", i ? ", " : " Not measured: ", names[i], i + 1 == count ? "." : "");
}
