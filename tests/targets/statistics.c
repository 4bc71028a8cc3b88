/* The judge's statistics of samples, for a test that works them out by other means: each line of standard input is a
 * sample, numbers apart by blanks; each line printed is a JSON object of what src/judge/stats.h says of it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge/stats.h"

#define VALUES_MOST 20000

static void print(const char *name, double value)
{
	if (isnan(value))
		printf("\"%s\": null, ", name);
	else
		printf("\"%s\": %.17g, ", name, value);
}

static size_t parse(const char *line, double *values)
{
	size_t n = 0;
	char *end;

	for (double x = strtod(line, &end); end != line && n < VALUES_MOST; x = strtod(line, &end)) {
		values[n++] = x;
		line = end;
	}
	return n;
}

static void describe(const double *values, size_t n)
{
	static double sorted[VALUES_MOST];
	static bool flags[VALUES_MOST];
	bool beyond_chance;
	struct paired p;

	memcpy(sorted, values, n * sizeof *values);
	stats_sort(sorted, n);
	printf("{");
	print("mean", stats_mean(values, n));
	print("deviation", stats_deviation(values, n));
	print("median", stats_median(sorted, n));
	print("middle", stats_middle(values, n));
	print("q05", stats_quantile(sorted, n, 0.05));
	print("q75", stats_quantile(sorted, n, 0.75));
	print("mad", stats_mad(sorted, n));
	print("outliers", (double)stats_outliers(values, n, flags));
	print("drift", stats_drift(values, n, &beyond_chance));
	stats_paired(values, n, 0, -1, 0.01, 0.05, &p);
	print("p", p.p);
	print("ratio", p.ratio);
	print("low", p.low);
	print("high", p.high);
	print("equivalence_low", p.equivalence_low);
	print("equivalence_high", p.equivalence_high);
	print("detectable", p.detectable);
	printf("\"verdict\": \"%s\"}\n", paired_verdict_name(p.verdict));
}

int main(void)
{
	static double values[VALUES_MOST];
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, stdin) > 0)
		describe(values, parse(line, values));
	free(line);
	return 0;
}
