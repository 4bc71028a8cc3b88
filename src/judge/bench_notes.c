#include "judge/bench_notes.h"

#include <math.h>

#include "base/units.h"

/* A first run that is not longer than this many medians is of no interest, outlier or not. */
#define FIRST_RUN_RATIO 1.05

static void note_first_run(const struct bench *b, const struct bench_command *c, struct bench_figures *f)
{
	double times = f->times[0] / f->median;

	if (!f->first_outlier || !(times > FIRST_RUN_RATIO))
		return;
	if (!b->warmup && !c->extras[BENCH_PREPARE])
		warnings_add(&f->notes, "the first run took %s, %.3g times the median: it found cold caches, perhaps; "
					"--warmup 3 leaves such runs out, --prepare makes every run start alike",
			     units_seconds(f->times[0]).text, times);
	else if (!c->extras[BENCH_PREPARE])
		warnings_add(&f->notes, "the first run took %s, %.3g times the median, in spite of %zu unmeasured "
					"before it; --prepare makes every run start alike",
			     units_seconds(f->times[0]).text, times, b->warmup);
	else if (!b->warmup)
		warnings_add(&f->notes, "the first run took %s, %.3g times the median, in spite of --prepare; "
					"--warmup 3 leaves such runs out",
			     units_seconds(f->times[0]).text, times);
	else
		warnings_add(&f->notes, "the first run took %s, %.3g times the median",
			     units_seconds(f->times[0]).text, times);
}

static void note_outliers(struct bench_figures *f)
{
	size_t others = f->outliers - (f->first_outlier ? 1 : 0);

	if (others)
		warnings_add(&f->notes,
			     "outliers: %zu of %zu runs (kept; the median does not mind them); something else used the "
			     "machine, perhaps: `assay doctor` shows how busy it is",
			     others, f->counted);
}

static void note_shape(const struct bench *b, const struct bench_command *c, struct bench_figures *f)
{
	const char *help = c->extras[BENCH_PREPARE]
				   ? "pin it to one kind of CPU with `taskset`, and look what --prepare "
				     "leaves to chance"
			   : b->warmup ? "--prepare makes every run start alike"
				       : "--prepare makes every run start alike, --warmup leaves out cold ones";

	if (f->bimodal)
		warnings_add(&f->notes, "the times fall into two groups, so that no single figure describes them; %s",
			     help);
	if (f->drifts)
		warnings_add(&f->notes,
			     "the times %s from run to run (rank correlation %.2f): the machine or the command's "
			     "data changes; comparisons are fair since runs are interleaved, the median is not "
			     "one of a steady state%s",
			     f->drift > 0 ? "grow" : "shrink", f->drift,
			     b->warmup ? "" : "; --warmup lets it settle first");
}

static void note_failures(const struct bench *b, struct bench_figures *f)
{
	if (f->timed_out)
		warnings_add(&f->notes, "%zu of %zu runs timed out and count as no number", f->timed_out, f->attempted);
	if (f->failed && b->state != BENCH_FAILED)
		warnings_add(&f->notes, "%zu of %zu runs failed; they count, since failures are ignored", f->failed,
			     f->attempted);
}

void bench_notes(const struct bench *b, struct bench_answer *a, size_t index)
{
	const struct bench_command *c = &b->commands[index];
	struct bench_figures *f = &a->items[index];

	note_failures(b, f);
	if (f->counted == 0)
		return;
	if (f->below_resolution) {
		warnings_add(&f->notes, "below resolution: most runs are not to be told from nothing (%s or less)%s",
			     units_seconds(a->resolution_s).text,
			     b->shell ? "; --shell none leaves the shell out of it" : "");
		return;
	}
	note_first_run(b, c, f);
	note_outliers(f);
	note_shape(b, c, f);
}
