/* assay.h: regions and phases of your own program, for `assay run`, `assay merge` and `assay inspect`.
 *
 * C99 and C++. Link with -lassay. Every function may be called from any thread, at any time, also before main, from
 * destructors and after assay_finalize. Where nothing is recorded they do nothing. Nothing here exits, prints, raises a
 * signal, or changes errno. Wrong use (an end without a begin, ends in another order, an end in another thread, longjmp
 * or exit out of a region) is recorded as well as it can be and counted by kind, which `assay inspect` shows; it never
 * hurts the program.
 *
 * Regions are recorded where the environment names a folder, as `assay run` makes it do, or assay_init does:
 *   ASSAY_DIR      folder for the recording; it must exist. `assay merge FOLDER -o FILE.h5` makes one file of it
 *   ASSAY_REGIONS  trace (default) | aggregate | count | off
 *   ASSAY_LIMIT    bytes that this process may write, 1G, 500M [8G]; what comes later is counted per region, not kept
 *   ASSAY_MARKERS  file that assay_mark appends to
 * Programs with more rights than their user (setuid) record nothing.
 *
 * With -DASSAY_DISABLE all of it compiles to nothing, and no argument is evaluated. */
#ifndef ASSAY_H
#define ASSAY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ASSAY_VERSION_MAJOR 0
#define ASSAY_VERSION_MINOR 1

/* A place in a program that is timed. Static, one per call site, made with ASSAY_REGION; or by its name at run time,
 * with assay_region_named. Two with one name are one region in every result. Its members are the library's own. */
struct assay_region {
	const char *name; /* UTF-8; at most 1,000 bytes of it count */
	const char *file; /* where it stands; may be NULL */
	const char *tags; /* "key=value,key=value"; may be NULL */
	uint32_t line;    /* 0: unknown */
	uint32_t id;      /* 0: not known to the library yet */
};

#define ASSAY_REGION(name) {(name), __FILE__, 0, (uint32_t)__LINE__, 0}
#define ASSAY_REGION_TAGGED(name, tags) {(name), __FILE__, (tags), (uint32_t)__LINE__, 0}

/* One call of a region that need not end in order or in its thread. Copied freely; to be ended once. All zero: none. */
typedef struct assay_token {
	uint64_t start; /* of the recording's clock */
	uint32_t region;
	uint32_t check;
} assay_token;

/* What is recorded of a call. trace: its start and end; aggregate: its region's calls, total, shortest, longest and a
 * histogram; count: how often its region begins, without a clock and without a look at its end. */
enum assay_mode { ASSAY_OFF = 0, ASSAY_COUNT = 1, ASSAY_AGGREGATE = 2, ASSAY_TRACE = 3 };

struct assay_options {
	const char *dir;      /* NULL: $ASSAY_DIR */
	enum assay_mode mode; /* ASSAY_OFF is off */
	uint64_t limit;       /* bytes; 0: $ASSAY_LIMIT, or 8 GiB */
};

#ifndef ASSAY_DISABLE

/* Called without a detour through the procedure linkage table, where the compiler can. */
#if defined(__has_attribute)
#if __has_attribute(noplt)
#define ASSAY_DIRECTLY __attribute__((noplt))
#endif
#endif
#ifndef ASSAY_DIRECTLY
#define ASSAY_DIRECTLY
#endif

/* What stands in this file is none of the program's functions, which -finstrument-functions has recorded. */
#define ASSAY_UNRECORDED __attribute__((no_instrument_function))

/* "0.1.0": the version of the library that is loaded. A constant; never NULL. */
const char *assay_version(void);

/* From now on the program is in the phase `name` (copied; at most 4,000 bytes are used, line breaks become blanks),
 * until the next mark. load, warmup, prefill, decode, serving and shutdown are groups of their own; any other name
 * belongs to the group "other". The time is CLOCK_MONOTONIC at the call. One write(2) to the file in $ASSAY_MARKERS,
 * which is opened for each call: some microseconds. No other thread may change the environment meanwhile.
 * Returns 0; -1 where nothing is being recorded or the file cannot be written (assay_last_error says which). */
int assay_mark(const char *name);

/* Why the last call in this thread that returned -1 did so: a sentence, valid until this thread's next call; empty
 * where none has. Never NULL. */
const char *assay_last_error(void);

/* Begins and ends a call of a region in this thread. Ends belong to the innermost open begin of the same region.
 * Two reads of the clock and one record of 24 bytes in this thread's own mapped file. */
ASSAY_DIRECTLY void assay_region_begin(struct assay_region *region);
ASSAY_DIRECTLY void assay_region_end(struct assay_region *region);

/* The region of that name (copied), made where there is none yet: the same pointer for the same name, valid until the
 * process ends. Takes a lock: keep the pointer where it is called often. Never NULL: where there is no memory, or there
 * are 65,535 regions already, one named "(other names)". */
struct assay_region *assay_region_named(const char *name);

/* For calls that overlap, or begin and end in different threads. They have no parent and count in no other region's
 * exclusive time. Ending a token twice, or one of an earlier recording, is counted and does nothing else. */
assay_token assay_token_begin(struct assay_region *region);
void assay_token_end(assay_token token);

/* Starts recording, in place of what the environment asks for. Returns 0, also where it is recording already with the
 * same folder; -1 where it cannot (assay_last_error says why). NULL: as the environment says. Without this call
 * recording starts at the first region. */
int assay_init(const struct assay_options *options);

/* For all threads, from each one's next region on. Regions that are open meanwhile are counted as interrupted. Returns
 * 0, or -1 where nothing is recorded. */
int assay_set_mode(enum assay_mode mode);
enum assay_mode assay_get_mode(void); /* ASSAY_OFF where nothing is recorded */

/* Which process of a job this is; else $OMPI_COMM_WORLD_RANK, $PMIX_RANK, $PMI_RANK, $SLURM_PROCID and their likes
 * say, else rank 0 of 1. size 0: unknown. libassay-mpi does it at MPI_Init. Returns 0, or -1 where nothing is
 * recorded. */
int assay_set_rank(int rank, int size);

/* That the clock of rank 0 shows CLOCK_MONOTONIC here plus `offset_ns`, now, within `bound_ns`. Between two such calls
 * the offset is taken to change evenly. libassay-mpi does it where ranks run on different machines. */
int assay_set_clock_offset(int64_t offset_ns, int64_t bound_ns);

/* One fact about the run for the file's metadata (copied; the last of one key counts). */
int assay_set_metadata(const char *key, const char *value);

/* Notes the clock and all counts, and puts on the disk what has been recorded: for before a risky step. What a killed
 * process had recorded is kept without it. Returns 0, or -1. */
int assay_flush(void);

/* The folder that is recorded into, NULL: none. Valid until assay_finalize. */
const char *assay_directory(void);

/* Ends the recording of all threads; regions that are open end here and are counted. Exit does it by itself. Returns
 * 0, also where nothing is recorded. */
int assay_finalize(void);

#else /* ASSAY_DISABLE */

/* sizeof looks at its operand without evaluating it, so that a variable of no other use brings no warning. */
static inline int assay_nothing(void)
{
	return 0;
}

static inline assay_token assay_no_token(void)
{
	assay_token none = {0, 0, 0};

	return none;
}

#define assay_version() "disabled"
#define assay_mark(name) ((void)sizeof(name), assay_nothing())
#define assay_last_error() ""
#define assay_region_begin(region) ((void)sizeof(region))
#define assay_region_end(region) ((void)sizeof(region))
#define assay_region_named(name) ((void)sizeof(name), (struct assay_region *)0)
#define assay_token_begin(region) ((void)sizeof(region), assay_no_token())
#define assay_token_end(token) ((void)sizeof(token))
#define assay_init(options) ((void)sizeof(options), assay_nothing())
#define assay_set_mode(mode) ((void)sizeof((mode) + 0), assay_nothing())
#define assay_get_mode() ((enum assay_mode)assay_nothing())
#define assay_set_rank(rank, size) ((void)sizeof((rank) + 0), (void)sizeof((size) + 0), assay_nothing())
#define assay_set_clock_offset(offset_ns, bound_ns) \
	((void)sizeof((offset_ns) + 0), (void)sizeof((bound_ns) + 0), assay_nothing())
#define assay_set_metadata(key, value) ((void)sizeof(key), (void)sizeof(value), assay_nothing())
#define assay_flush() assay_nothing()
#define assay_directory() ((const char *)0)
#define assay_finalize() assay_nothing()

#endif

#ifdef __cplusplus
}
#endif

/* ASSAY_SCOPE("solve"); times the block from here to its end, however it is left: also by return, break, goto, and in
 * C++ by an exception. In C it needs GCC or Clang. ASSAY_SCOPE_TAGGED("solve", "solver=cg") with tags;
 * ASSAY_SCOPE_NAMED(text) with a name made at run time. */
#ifdef ASSAY_DISABLE
#define ASSAY_SCOPE(name) ((void)sizeof(name))
#define ASSAY_SCOPE_TAGGED(name, tags) ((void)sizeof(name), (void)sizeof(tags))
#define ASSAY_SCOPE_NAMED(name) ((void)sizeof(name))
#else
/* A number for the names of a scope's variables: two may stand in one line, and inner ones hide no outer one. */
#ifdef __COUNTER__
#define ASSAY_NUMBER_ __COUNTER__
#else
#define ASSAY_NUMBER_ __LINE__
#endif
#define ASSAY_SCOPE(name) ASSAY_SCOPE_AT_(name, 0, ASSAY_NUMBER_)
#define ASSAY_SCOPE_TAGGED(name, tags) ASSAY_SCOPE_AT_(name, tags, ASSAY_NUMBER_)
#define ASSAY_SCOPE_NAMED(name) ASSAY_SCOPE_HERE_(name, ASSAY_NUMBER_)
#define ASSAY_SCOPE_AT_(name, tags, number) ASSAY_SCOPE_STATIC_(name, tags, number)
#define ASSAY_SCOPE_HERE_(name, number) ASSAY_SCOPE_MADE_(name, number)
#define ASSAY_SCOPE_STATIC_(name, tags, number) \
	static struct assay_region assay_region_##number = ASSAY_REGION_TAGGED(name, tags); \
	ASSAY_SCOPE_OF_(&assay_region_##number, assay_scope_##number)
#define ASSAY_SCOPE_MADE_(name, number) ASSAY_SCOPE_OF_(assay_region_named(name), assay_scope_##number)
#ifdef __cplusplus
class assay_scope
{
	struct assay_region *region_;
	assay_scope(const assay_scope &);
	assay_scope &operator=(const assay_scope &);

public:
	ASSAY_UNRECORDED explicit assay_scope(struct assay_region *region) : region_(region)
	{
		assay_region_begin(region);
	}
	ASSAY_UNRECORDED ~assay_scope()
	{
		assay_region_end(region_);
	}
};
#define ASSAY_SCOPE_OF_(region, variable) assay_scope variable(region)
#else
ASSAY_UNRECORDED static inline struct assay_region *assay_scope_begin(struct assay_region *region)
{
	assay_region_begin(region);
	return region;
}
ASSAY_UNRECORDED static inline void assay_scope_end(struct assay_region **region)
{
	assay_region_end(*region);
}
#define ASSAY_SCOPE_OF_(region, variable) \
	struct assay_region *variable __attribute__((cleanup(assay_scope_end), unused)) = assay_scope_begin(region)
#endif
#endif

#include "assay_graph.h"
#include "assay_measure.h"
#include "assay_spy.h"

#endif
