/* assay_measure.h: how long a function or a block takes. Part of assay.h, which includes it.
 *
 * C99 and C++. Times are seconds. What is recorded by the rest of the library is untouched by this: it works without a
 * recording, and with -DASSAY_DISABLE. From any thread, several at once; errno stays as it is. */
#ifndef ASSAY_MEASURE_H
#define ASSAY_MEASURE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct assay_measure_options {
	uint64_t repeat;      /* batches, at most 1,000,000; ignored with max_time */
	uint64_t number;      /* executions in one batch; with max_time it is chosen */
	uint64_t warmup;      /* executions before the first batch */
	int div_by_number;    /* 1: figures are per execution; 0: per batch */
	double max_time;      /* above 0: growing batches until their total is beyond it; needs div_by_number */
	void (*each)(void *); /* with the context, untimed, before every execution: fresh input. NULL: none */
	size_t context_size;  /* only passed on to the result */
};

#define ASSAY_MEASURE_DEFAULTS {10, 50, 1, 1, 0.0, 0, 0}

struct assay_timing {
	/* Of the batches' times. deviation: of the population. ttime: their sum, after the division; with max_time all
	 * seconds, while repeat is 1, number all executions, and the others are weighted by the batches' numbers.
	 * warmup_time is as the clock showed it. */
	double average, deviation, min_exec, max_exec, ttime, warmup_time;
	uint64_t repeat, number;
	size_t context_size;
	double median, p05, p25, p75, p95;
	double low, high, confidence; /* of the median, exact; NaN where there are too few batches, and with max_time */
	double overhead;              /* of an empty function, per execution; it is subtracted from all of the above */
	double resolution;            /* of the clock */
	double cycles, instructions;  /* per execution, the kernel's not included; NaN: not counted here */
	unsigned warnings;            /* bits; assay_timing_warning has their sentences */
};

/* Calls function(context). Returns 0; -1 where an option makes no sense or there is no memory (assay_last_error says
 * which), and *result is untouched. NULL options: ASSAY_MEASURE_DEFAULTS. The functions have to return: what leaves
 * them by longjmp or an exception leaks some memory and descriptors. */
int assay_measure_time(void (*function)(void *), void *context, const struct assay_measure_options *options,
		       struct assay_timing *result);

/* The sentence of the `index`th warning of *t, from 0; NULL: there are no more. A constant. */
const char *assay_timing_warning(const struct assay_timing *t, unsigned index);

/* The figures of `count` batches that somebody else timed: numbers[i] executions took seconds[i], of which `overhead`
 * per execution is subtracted. Of the options, div_by_number, context_size and max_time (above 0: by time) count.
 * Returns 0, or -1 as above. */
int assay_timing_of(const uint64_t *numbers, const double *seconds, size_t count, double overhead,
		    const struct assay_measure_options *options, struct assay_timing *result);

/* The batches of max_time. Start with zeroes; `seconds` is what the batch before took (at first ignored). Returns the
 * number of the next batch; 0: their total is beyond max_time. */
struct assay_timing_plan {
	double total;
	uint64_t i;
	unsigned step;
};
uint64_t assay_timing_plan_next(struct assay_timing_plan *plan, double seconds, double max_time);

/* A block that is being measured. Its members are the library's own. */
struct assay_measurement {
	uint64_t number, left; /* executions in this batch; those that it still has to make */
	void *own;
};
void assay_measurement_begin(struct assay_measurement *m, struct assay_timing *result,
			     const struct assay_measure_options *options, void (*empty)(uint64_t number));
int assay_measurement_more(struct assay_measurement *m);
void assay_measurement_end(struct assay_measurement *m);

#ifdef __cplusplus
}
#endif

#ifdef __GNUC__

/* ASSAY_KEEP(x) evaluates x once and keeps its value: the compiler has to make it, in a register or in memory. What it
 * can reckon while it compiles, it still may: cos(0.5) may be a constant.
 * ASSAY_HIDE(x) is x, evaluated once, as a value that the compiler knows nothing of: cos(ASSAY_HIDE(0.5)) is reckoned
 * when the program runs. Of an array it is the pointer.
 * ASSAY_CLOBBER(): all memory may have been read and written here. None costs more than an instruction that moves x. */
#if defined(__SSE2__)
#define ASSAY_ANYWHERE_ "rxm"
#elif defined(__aarch64__)
#define ASSAY_ANYWHERE_ "rwm"
#else
#define ASSAY_ANYWHERE_ "rm"
#endif
#ifdef __clang__ /* takes no such choice for a value that is read and written: HIDE stores and loads it */
#define ASSAY_SOMEWHERE_ "+m"
#else
#define ASSAY_SOMEWHERE_ "+" ASSAY_ANYWHERE_
#endif
#define ASSAY_CLOBBER() __asm__ __volatile__("" : : : "memory")
#ifdef __cplusplus
template <class T> __attribute__((always_inline)) inline void assay_keep_(const T &value)
{
	__asm__ __volatile__("" : : ASSAY_ANYWHERE_(value) : "memory");
}
#define ASSAY_KEEP(x) assay_keep_(x)
template <class T> __attribute__((always_inline)) inline T assay_hide_(T value)
{
	__asm__ __volatile__("" : ASSAY_SOMEWHERE_(value));
	return value;
}
#define ASSAY_HIDE(x) assay_hide_(x)
#else
/* The comma makes a pointer of an array, and a value of a const variable. */
#define ASSAY_KEEP(x) \
	do { \
		__typeof__(((void)0, (x))) assay_kept_ = (x); \
		__asm__ __volatile__("" : : ASSAY_ANYWHERE_(assay_kept_) : "memory"); \
	} while (0)
#define ASSAY_HIDE(x) \
	__extension__({ \
		__typeof__(((void)0, (x))) assay_hidden_ = (x); \
		__asm__ __volatile__("" : ASSAY_SOMEWHERE_(assay_hidden_)); \
		assay_hidden_; \
	})
#endif

/* Times a block, in place: ASSAY_MEASURE(&timing, &options) { work(); }. Options may be NULL. No call per execution;
 * the time of an empty loop, compiled as the block is, is subtracted. `continue` goes to the next execution, `break`
 * ends the measurement with the batches that were complete. A way out by return, goto or an exception does, too
 * (longjmp leaks). timing.repeat is 0 where there is no complete batch: an option makes no sense, or the block was left
 * before (assay_last_error). options.each is refused: a function, with assay_measure_time, can have it. C99, C++. */
static __inline__ __attribute__((unused)) void assay_measure_empty_(uint64_t number)
{
	for (; number; number--)
		__asm__ __volatile__("");
}

#ifdef __COUNTER__
#define ASSAY_MEASURE_NUMBER_ __COUNTER__
#else
#define ASSAY_MEASURE_NUMBER_ __LINE__
#endif
#define ASSAY_MEASURE(result, options) ASSAY_MEASURE_HERE_(result, options, ASSAY_MEASURE_NUMBER_)
#define ASSAY_MEASURE_HERE_(result, options, unique) ASSAY_MEASURE_AT_(result, options, unique)
/* The innermost counter is a variable of its own, so that it can live in a register; the loop around it runs once, and
 * says how far the block came. */
#define ASSAY_MEASURE_AT_(result, options, unique) \
	for (ASSAY_MEASUREMENT_(assay_m_##unique, result, options); assay_measurement_more(&assay_m_##unique);) \
		for (uint64_t assay_n_##unique = assay_m_##unique.number, assay_go_##unique = 1; assay_go_##unique; \
		     assay_go_##unique = 0, assay_m_##unique.left = assay_n_##unique) \
			for (; assay_n_##unique; assay_n_##unique--)

#ifdef __cplusplus
class assay_measurement_scope : public assay_measurement
{
	assay_measurement_scope(const assay_measurement_scope &);
	assay_measurement_scope &operator=(const assay_measurement_scope &);

public:
	assay_measurement_scope(struct assay_timing *result, const struct assay_measure_options *options)
	{
		assay_measurement_begin(this, result, options, assay_measure_empty_);
	}
	~assay_measurement_scope()
	{
		assay_measurement_end(this);
	}
};
#define ASSAY_MEASUREMENT_(variable, result, options) assay_measurement_scope variable((result), (options))
#else
static __inline__ __attribute__((unused)) struct assay_measurement
assay_measurement_made_(struct assay_timing *result, const struct assay_measure_options *options)
{
	struct assay_measurement m;

	assay_measurement_begin(&m, result, options, assay_measure_empty_);
	return m;
}
#define ASSAY_MEASUREMENT_(variable, result, options) \
	struct assay_measurement variable __attribute__((cleanup(assay_measurement_end))) = \
		assay_measurement_made_((result), (options))
#endif

#endif /* __GNUC__ */

#endif
