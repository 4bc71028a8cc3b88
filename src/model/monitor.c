#include "model/monitor.h"

#include <math.h>

void monitor_init(struct monitor *m)
{
	*m = (struct monitor){.begin = -1, .end = -1, .peak = -1};
}

void monitor_add(struct monitor *m, int64_t value, int64_t now)
{
	if (value < 0)
		return;
	if (m->n == 0)
		m->begin = value;
	if (value > m->peak) {
		m->peak = value;
		m->peak_at = now;
	}
	m->end = value;
	m->sum += (double)value;
	m->n++;
}

double monitor_average(const struct monitor *m)
{
	return m->n ? m->sum / (double)m->n : NAN;
}
