#include "base/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

struct units_text units_seconds(double s)
{
	struct units_text t;
	double magnitude = fabs(s);

	if (isnan(s))
		snprintf(t.text, sizeof t.text, "n/a");
	else if (magnitude >= 1e9)
		snprintf(t.text, sizeof t.text, "%.3g s", s);
	else if (magnitude >= 3600)
		snprintf(t.text, sizeof t.text, "%d h %02d min", (int)(s / 3600), (int)fmod(magnitude / 60, 60));
	else if (magnitude >= 99.95)
		snprintf(t.text, sizeof t.text, "%d min %02d s", (int)(s / 60), (int)fmod(magnitude, 60));
	else if (magnitude >= 9.995)
		snprintf(t.text, sizeof t.text, "%.1f s", s);
	else if (magnitude >= 0.9995)
		snprintf(t.text, sizeof t.text, "%.2f s", s);
	else if (magnitude >= 0.99995e-3)
		snprintf(t.text, sizeof t.text, "%.1f ms", s * 1e3);
	else if (magnitude >= 0.99995e-6)
		snprintf(t.text, sizeof t.text, "%.1f us", s * 1e6);
	else if (magnitude > 0)
		snprintf(t.text, sizeof t.text, "%.1f ns", s * 1e9);
	else
		snprintf(t.text, sizeof t.text, "0 s");
	return t;
}

struct units_text units_bytes(double bytes)
{
	static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	struct units_text t;
	size_t unit = 0;

	if (isnan(bytes)) {
		snprintf(t.text, sizeof t.text, "n/a");
		return t;
	}
	while (fabs(bytes) >= 1023.95 && unit + 1 < sizeof names / sizeof *names) {
		bytes /= 1024;
		unit++;
	}
	if (unit > 0 && fabs(bytes) < 9.995)
		snprintf(t.text, sizeof t.text, "%.2f %s", bytes, names[unit]);
	else if (unit > 0 && fabs(bytes) < 99.95)
		snprintf(t.text, sizeof t.text, "%.1f %s", bytes, names[unit]);
	else
		snprintf(t.text, sizeof t.text, fabs(bytes) < 1e6 ? "%.0f %s" : "%.3g %s", bytes, names[unit]);
	return t;
}

struct units_text units_percent(double share)
{
	struct units_text t;

	if (isnan(share))
		snprintf(t.text, sizeof t.text, "n/a");
	else if (fabs(share) < 0.0995)
		snprintf(t.text, sizeof t.text, "%.1f%%", share * 100);
	else
		snprintf(t.text, sizeof t.text, fabs(share) < 1e6 ? "%.0f%%" : "%.3g%%", share * 100);
	return t;
}

struct units_text units_count(double count)
{
	struct units_text t;
	char digits[24];
	size_t to = 0;
	int length;

	if (isnan(count) || fabs(count) >= 1e15) {
		snprintf(t.text, sizeof t.text, isnan(count) ? "n/a" : "%.3g", count);
		return t;
	}
	length = snprintf(digits, sizeof digits, "%.0f", count);
	for (int i = 0; i < length && to + 2 < sizeof t.text; i++) {
		int left = length - i;

		if (i > 0 && digits[i - 1] != '-' && left % 3 == 0)
			t.text[to++] = ',';
		t.text[to++] = digits[i];
	}
	t.text[to] = '\0';
	return t;
}
