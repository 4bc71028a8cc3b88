#include "store/graph_recording_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "base/cleanup.h"
#include "base/clock.h"
#include "wire/graph.h"

#define AT_ONCE 4096u /* pairs that are read at once */

struct calls_open {
	struct calls_frame *frames; /* behind that for the outside */
	struct calls_pair *pairs;   /* of these frames */
	size_t count;
};

bool calls_clock_now(double *ret_clock, double *ret_ns)
{
#if defined(__x86_64__)
	*ret_clock = (double)__rdtsc();
	*ret_ns = (double)clock_mono_ns();
	return true;
#else
	(void)ret_clock, (void)ret_ns;
	return false;
#endif
}

void calls_sums_init(struct calls_sums *s, double scale)
{
	*s = (struct calls_sums){.scale = scale};
}

void calls_sums_release(struct calls_sums *s)
{
	for (size_t i = 0; i < s->open_count; i++) {
		free(s->open[i].frames);
		free(s->open[i].pairs);
	}
	free(s->open);
	free(s->items);
	free(s->index);
	*s = (struct calls_sums){0};
}

static size_t place_of(const struct calls_sums *s, uint64_t caller, uint64_t callee)
{
	uint64_t mixed = caller * UINT64_C(0x9e3779b97f4a7c15) ^ callee * UINT64_C(0xc2b2ae3d27d4eb4f);

	return (size_t)(mixed >> 32 ^ mixed >> 4) & (s->places - 1);
}

static int grow(struct calls_sums *s, struct error *err)
{
	size_t room = s->room ? 2 * s->room : 256;
	struct calls_sum *items = reallocarray(s->items, room, sizeof *items);
	uint32_t *index;

	if (!items)
		return error_set(err, "out of memory for %zu calls", room);
	s->items = items;
	index = calloc(2 * room, sizeof *index);
	if (!index)
		return error_set(err, "out of memory for %zu calls", room);
	free(s->index);
	s->index = index;
	s->places = 2 * room;
	s->room = room;
	for (size_t i = 0; i < s->count; i++) {
		size_t at = place_of(s, items[i].caller, items[i].callee);

		while (index[at])
			at = (at + 1) & (s->places - 1);
		index[at] = (uint32_t)i + 1;
	}
	return 0;
}

static struct calls_sum *sum_of(struct calls_sums *s, uint64_t caller, uint64_t callee, struct error *err)
{
	size_t at;

	if (s->count == s->room && grow(s, err) < 0)
		return NULL;
	for (at = place_of(s, caller, callee); s->index[at]; at = (at + 1) & (s->places - 1)) {
		struct calls_sum *found = &s->items[s->index[at] - 1];

		if (found->caller == caller && found->callee == callee)
			return found;
	}
	s->items[s->count] = (struct calls_sum){.caller = caller, .callee = callee};
	s->index[at] = (uint32_t)s->count + 1;
	return &s->items[s->count++];
}

static void add_count(uint64_t *to, uint64_t more)
{
	*to = more > (uint64_t)INT64_MAX - *to ? (uint64_t)INT64_MAX : *to + more;
}

/* Whole nanoseconds; a time that cannot be, of a damaged file or of a clock that went back, counts as none. */
static double nanoseconds(const struct calls_sums *s, uint64_t steps)
{
	return steps > (uint64_t)INT64_MAX ? 0 : round((double)steps * s->scale);
}

static int add_pair(struct calls_sums *s, const struct calls_pair *p, struct error *err)
{
	struct calls_sum *sum;

	if (!p->callee || !p->calls)
		return 0;
	sum = sum_of(s, p->caller, p->callee, err);
	if (!sum)
		return -1;
	add_count(&sum->calls, p->calls);
	add_count(&sum->primitive, p->primitive > p->calls ? p->calls : p->primitive);
	sum->self_ns += nanoseconds(s, p->self);
	sum->total_ns += nanoseconds(s, p->total);
	return 0;
}

static bool read_at(int fd, uint64_t offset, void *to, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t got = pread(fd, (char *)to + done, size - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		done += (size_t)got;
	}
	return true;
}

/* 1: the file is shorter than it says. */
static int add_pairs(struct calls_sums *s, int fd, uint64_t count, struct error *err)
{
	CLEANUP(free_cleanup) struct calls_pair *pairs = malloc(AT_ONCE * sizeof *pairs);

	if (!pairs)
		return error_set(err, "out of memory for calls");
	for (uint64_t done = 0; done < count;) {
		size_t some = count - done < AT_ONCE ? (size_t)(count - done) : AT_ONCE;

		if (!read_at(fd, CALLS_PAIRS_AT + done * sizeof *pairs, pairs, some * sizeof *pairs))
			return 1;
		for (size_t i = 0; i < some; i++)
			if (done + i == CALLS_DROPPED)
				add_count(&s->dropped, pairs[i].calls);
			else if (done + i >= CALLS_RESERVED && add_pair(s, &pairs[i], err) < 0)
				return -1;
		done += some;
	}
	return 0;
}

/* What was open; 1: the file is shorter than it says, or damaged. */
static int keep_open(struct calls_sums *s, int fd, const struct calls_header *h, struct error *err)
{
	struct calls_open *all = reallocarray(s->open, s->open_count + 1, sizeof *all), *o;

	if (!all)
		return error_set(err, "out of memory for open calls");
	s->open = all;
	o = &all[s->open_count++];
	*o = (struct calls_open){
		.frames = malloc(h->depth * sizeof *o->frames),
		.pairs = malloc(h->depth * sizeof *o->pairs),
	};
	if (!o->frames || !o->pairs)
		return error_set(err, "out of memory for %" PRIu64 " open calls", h->depth);
	if (!read_at(fd, CALLS_FRAMES_AT + sizeof *o->frames, o->frames, h->depth * sizeof *o->frames))
		return 1;
	for (size_t i = 0; i < h->depth; i++)
		if (o->frames[i].pair >= h->pairs ||
		    !read_at(fd, CALLS_PAIRS_AT + o->frames[i].pair * sizeof *o->pairs, &o->pairs[i], sizeof *o->pairs))
			return 1;
	o->count = h->depth;
	return 0;
}

static bool is_sound(const struct calls_header *h)
{
	return memcmp(h->magic, CALLS_MAGIC, sizeof h->magic) == 0 && h->version == CALLS_VERSION &&
	       h->pairs >= CALLS_RESERVED && h->pairs <= CALLS_PAIRS_MAX && h->depth < CALLS_FRAMES_MAX;
}

int calls_sums_open(struct calls_sums *s, const char *path, struct warnings *notes, struct error *err)
{
	CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct calls_header h;
	struct stat st;
	int got;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !read_at(fd, 0, &h, sizeof h)) {
		warnings_add(notes, "%s: this thread's calls cannot be read.", path);
		return 0;
	}
	/* Killed before it was made. */
	if (h.version == 0)
		return 0;
	if (!is_sound(&h)) {
		warnings_add(notes, "%s: this thread's calls are damaged, and were left out.", path);
		return 0;
	}
	got = add_pairs(s, fd, h.pairs, err);
	if (got == 0 && h.depth)
		got = keep_open(s, fd, &h, err);
	if (got > 0)
		warnings_add(notes, "%s: this thread's calls are damaged: a part is left out.", path);
	if (h.trouble)
		warnings_add(notes, "%s: some of this thread's calls were not recorded: %s.", path,
			     strerror(h.trouble));
	s->threads++;
	add_count(&s->beyond, h.beyond);
	add_count(&s->lost, h.lost);
	if (h.last > s->last)
		s->last = h.last;
	for (size_t i = 0; got == 0 && h.depth && i < h.depth; i++)
		if (s->open[s->open_count - 1].frames[i].start > s->last)
			s->last = s->open[s->open_count - 1].frames[i].start;
	return got < 0 ? -1 : 0;
}

struct opened {
	uint64_t callee;
	size_t at;
};

static int by_callee(const void *a, const void *b)
{
	const struct opened *x = a, *y = b;

	if (x->callee != y->callee)
		return x->callee < y->callee ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

/* Which frames are the outermost ones of their function. */
static bool *find_outermost(const struct calls_open *o, struct error *err)
{
	CLEANUP(free_cleanup) struct opened *sorted = malloc(o->count * sizeof *sorted);
	bool *outermost = calloc(o->count, sizeof *outermost);

	if (!sorted || !outermost) {
		free(outermost);
		error_set(err, "out of memory for %zu open calls", o->count);
		return NULL;
	}
	for (size_t i = 0; i < o->count; i++)
		sorted[i] = (struct opened){o->pairs[i].callee, i};
	qsort(sorted, o->count, sizeof *sorted, by_callee);
	for (size_t i = 0; i < o->count; i++)
		outermost[sorted[i].at] = i == 0 || sorted[i].callee != sorted[i - 1].callee;
	return outermost;
}

static int end_open(struct calls_sums *s, const struct calls_open *o, uint64_t end, struct error *err)
{
	CLEANUP(free_cleanup) bool *outermost = find_outermost(o, err);
	uint64_t above = 0; /* time of the frame that this one called */

	if (!outermost)
		return -1;
	for (size_t i = o->count; i-- > 0;) {
		const struct calls_frame *f = &o->frames[i];
		uint64_t spent = end > f->start ? end - f->start : 0;
		const struct calls_pair *p = &o->pairs[i];
		struct calls_sum *sum;

		if (f->pair >= CALLS_RESERVED && p->callee) {
			sum = sum_of(s, p->caller, p->callee, err);
			if (!sum)
				return -1;
			sum->self_ns += nanoseconds(s, spent - f->children - above);
			sum->total_ns += outermost[i] ? nanoseconds(s, spent) : 0;
		}
		above = spent;
	}
	return 0;
}

int calls_sums_finish(struct calls_sums *s, uint64_t end, struct calls_process *ret, struct error *err)
{
	uint64_t last = end > s->last ? end : s->last;

	for (size_t i = 0; i < s->open_count; i++) {
		if (s->open[i].count && end_open(s, &s->open[i], last, err) < 0)
			return -1;
		add_count(&ret->open, s->open[i].count);
	}
	ret->sums = s->items;
	ret->sum_count = s->count;
	ret->threads = s->threads;
	ret->dropped = s->dropped;
	ret->beyond = s->beyond;
	ret->lost = s->lost;
	s->items = NULL;
	return 0;
}
