/* Timings as users of assay.h take them. C99, C17, C++98 and C++20 compile it without a warning. Prints the executions
 * of each, and whether a kept value, one of a hidden input, and one that nobody wants take any time. Built with
 * optimisation. */
#include <assay.h>

#include <stdio.h>

struct work {
	double value;
	unsigned long calls, prepared;
};

static double compute(double x)
{
	int i;

	for (i = 0; i < 20; i++)
		x = x * 1.0000001 + 0.5;
	return x;
}

static void call(void *context)
{
	struct work *w = (struct work *)context;

	w->calls++;
	ASSAY_KEEP(compute(w->value));
}

static void prepare(void *context)
{
	((struct work *)context)->prepared++;
}

static unsigned long leave_early(const struct assay_measure_options *options)
{
	unsigned long made = 0;
	struct assay_timing t;

	ASSAY_MEASURE(&t, options)
	{
		if (++made == 7)
			return made;
	}
	return 0;
}

int main(void)
{
	struct assay_measure_options options = ASSAY_MEASURE_DEFAULTS;
	struct work work = {0.5, 0, 0};
	struct assay_timing function, kept, hidden, dropped;
	int failed, broken = 0;

	options.each = prepare;
	failed = assay_measure_time(call, &work, &options, &function);
	options.each = 0;
	options.number = 20000;
	ASSAY_MEASURE(&kept, &options)
	{
		ASSAY_KEEP(compute(work.value));
		ASSAY_CLOBBER();
	}
	ASSAY_MEASURE(&hidden, &options)
	{
		ASSAY_KEEP(compute(ASSAY_HIDE(0.5)));
	}
	ASSAY_MEASURE(&dropped, &options)
	{
		compute(work.value);
	}
	ASSAY_MEASURE(&function, NULL) if (++broken == 120) break;
	printf("%d %lu %lu %lu %d %d\n", failed, work.calls, work.prepared, leave_early(&options), broken,
	       (int)function.repeat);
	printf("%d %d %d\n", kept.median > 1e-9, hidden.median > 1e-9, dropped.median < 1e-9);
	printf("%s\n", assay_timing_warning(&dropped, dropped.warnings & 1));
	return 0;
}
