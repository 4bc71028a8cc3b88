#include "judge/movement.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge/phase_facts.h"
#include "judge/wording.h"

#define MIB 1048576.0

/* What is worth a sentence. */
#define MOVED_LEAST (8 * MIB)       /* from or to disk in a phase */
#define REFAULTS_LEAST (8 * MIB)    /* dropped and read again in a phase */
#define REFAULTS_GRAVE (4 * MIB)    /* per second */
#define FAULTS_LEAST 200.0          /* major faults in a phase ... */
#define FAULTS_RATE 50.0            /* ... and per second */
#define SWAPPED_LEAST (1 * MIB)
#define CACHED_COLD 0.5  /* below this share of an input the run was a cold one */
#define CACHED_ALL 0.95
#define CACHED_LOST 0.1  /* of an input, from before the run to after it */
#define READ_LEAST 0.1   /* of an input's size, of all that was read */
#define INPUTS_SHOWN 4   /* the largest; the others are told together */
#define PHASES_SHOWN 20  /* with the most bytes */

struct movements {
	struct movement *items;
	size_t count, room;
	bool failed;
};

/* A new one, to which evidence can be added; NULL when out of memory. */
static struct movement *tell(struct movements *m, enum movement_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static struct movement *tell(struct movements *m, enum movement_level level, const char *format, ...)
{
	struct movement *to;
	va_list args;

	if (m->count == m->room) {
		size_t room = m->room ? 2 * m->room : 16;
		struct movement *items = reallocarray(m->items, room, sizeof *items);

		if (!items) {
			m->failed = true;
			return NULL;
		}
		m->items = items;
		m->room = room;
	}
	to = &m->items[m->count++];
	*to = (struct movement){.level = level};
	va_start(args, format);
	vsnprintf(to->text, sizeof to->text, format, args);
	va_end(args);
	return to;
}

/* `to` may be NULL. */
static void prove(struct movement *to, const char *name, double value)
{
	if (to)
		evidence_add(to->evidence, &to->evidence_count, name, value);
}

static const char *kind_of_disk(const struct phase_facts *p)
{
	return strcmp(p->disk.kind, "ssd") == 0	      ? "an SSD"
	       : strcmp(p->disk.kind, "hdd") == 0     ? "a hard disk"
	       : strcmp(p->disk.kind, "virtual") == 0 ? "a virtual disk"
						      : "a disk of unknown kind";
}

static void tell_disk(struct movements *m, const struct phase_facts *p)
{
	double read = p->f->read_bytes, written = p->f->write_bytes;
	bool most_is_own = read + written >= 0.5 * p->seconds * (p->disk.read_rate + p->disk.write_rate);
	struct movement *to;
	char where[96] = "";

	if (*p->disk.name && most_is_own)
		snprintf(where, sizeof where, " %s (%s)", p->disk.name, kind_of_disk(p));
	if (read >= MOVED_LEAST) {
		to = tell(m, MOVEMENT_INFO, "%s: %s read from%s%s, %s/s.", p->phase->name, units_bytes(read).text,
			  *where ? "" : " storage", where, units_bytes(p->read_rate).text);
		prove(to, "read_mib", read / MIB);
		prove(to, "read_mib_per_s", p->read_rate / MIB);
		prove(to, "disk_busy_share", p->disk.busy);
	}
	if (written >= MOVED_LEAST) {
		to = tell(m, MOVEMENT_INFO, "%s: %s written%s%s (counted when pages are dirtied), %s/s.",
			  p->phase->name, units_bytes(written).text, *where ? " for" : "", where,
			  units_bytes(p->write_rate).text);
		prove(to, "write_mib", written / MIB);
		prove(to, "write_mib_per_s", p->write_rate / MIB);
	}
}

/* Of what a load asked for, through calls or by mapping, what had not to be read came from the page cache. */
static void tell_cache_share(struct movements *m, const struct phase_facts *p)
{
	double asked = p->f->read_chars + p->f->file_peak, share = 1 - p->f->read_bytes / asked;
	struct movement *to;

	if (p->phase->group != GROUP_LOAD || !(asked >= MOVED_LEAST))
		return;
	share = fmax(0, share);
	to = tell(m, share < CACHED_COLD ? MOVEMENT_NOTE : MOVEMENT_INFO,
		  "%s: %s of the %s that it read or mapped came from the page cache%s.", p->phase->name,
		  units_percent(share).text, units_bytes(asked).text, share < 0.995 ? ", the rest from disk" : "");
	prove(to, "page_cache_share", share);
}

static void tell_refaults(struct movements *m, const struct phase_facts *p)
{
	bool grave = p->refault_rate >= REFAULTS_GRAVE && p->psi_memory >= 0.1;
	double bytes = p->refault_rate * p->seconds;
	struct movement *to;

	if (!(bytes >= REFAULTS_LEAST) || isnan(p->f->read_bytes))
		return;
	to = tell(m, grave ? MOVEMENT_WARNING : MOVEMENT_NOTE,
		  "%s: %s of the file pages read had been dropped from memory before, %s/s.", p->phase->name,
		  units_bytes(bytes).text, units_bytes(bytes / p->seconds).text);
	prove(to, "refault_mib", bytes / MIB);
	prove(to, "refault_mib_per_s", p->refault_rate / MIB);
	prove(to, "pressure_memory_some", p->psi_memory);
}

static void tell_faults(struct movements *m, const struct phase_facts *p)
{
	double faults = p->f->major_faults;
	struct movement *to;

	if (!(faults >= FAULTS_LEAST && faults >= FAULTS_RATE * p->seconds))
		return;
	to = tell(m, MOVEMENT_NOTE, "%s: %s page faults had to wait for the disk, %.0f a second.", p->phase->name,
		  units_count(round(faults)).text, faults / p->seconds);
	prove(to, "major_faults", faults);
	prove(to, "read_mib", p->f->read_bytes / MIB);
}

static void tell_swap(struct movements *m, const struct run *run)
{
	double in = run->whole.swap_in, out = run->whole.swap_out;
	struct movement *to;

	if (!(in >= SWAPPED_LEAST) && !(out >= SWAPPED_LEAST))
		return;
	to = tell(m, MOVEMENT_WARNING, "%s were swapped in and %s out on this machine while the command ran.",
		  units_bytes(in).text, units_bytes(out).text);
	prove(to, "swap_in_mib", in / MIB);
	prove(to, "swap_out_mib", out / MIB);
}

/* A large file that the command reads. */
struct input {
	const char *path;
	bool opened; /* seen among its open files, not on its command line */
	double size, before, after;
};

static int by_size(const void *a, const void *b)
{
	const struct input *x = a, *y = b;

	return (x->size < y->size) - (x->size > y->size);
}

/* Whether so much was read at all, by calls, by mapping or from disk, that the file may have been: a word of the
 * command line can name anything. */
static bool is_read(const struct run *run, double size)
{
	const struct phase_figures *f = &run->whole;

	return !(fmax(f->read_bytes, fmax(f->read_chars, f->file_peak)) < READ_LEAST * size);
}

/* "file PATH" or "opened PATH", as the source says where it found the file. */
static size_t find_inputs(const struct run *run, struct input *inputs, size_t room, char (*paths)[256])
{
	size_t count = 0;

	for (size_t k = 0; count < room; k++) {
		struct input *in = &inputs[count];
		const struct run_series *size, *cached;
		const char *path;
		char name[48];
		size_t length;

		snprintf(name, sizeof name, "input.%zu.size", k);
		size = run_series_find(run, name);
		snprintf(name, sizeof name, "input.%zu.cached", k);
		cached = run_series_find(run, name);
		if (!size)
			break;
		path = size->scope + strcspn(size->scope, " ");
		path += *path == ' ';
		length = strlen(path);
		in->opened = strncmp(size->scope, "opened ", 7) == 0;
		for (const char *slash = memchr(path, '/', length); slash; slash = memchr(path, '/', length)) {
			length -= (size_t)(slash + 1 - path);
			path = slash + 1;
		}
		snprintf(paths[count], sizeof paths[count], "%.*s", (int)(length < 200 ? length : 200), path);
		*in = (struct input){.path = paths[count],
				     .opened = in->opened,
				     .size = size->last,
				     .before = cached ? cached->first : NAN,
				     .after = cached ? cached->last : NAN};
		/* What changed its size meanwhile was written. */
		count += size->first == size->last && is_read(run, size->last);
	}
	qsort(inputs, count, sizeof *inputs, by_size);
	return count;
}

/* A file that was found open had been read from already: `read` bytes from disk in all may be of it. */
static void tell_input(struct movements *m, const struct input *in, double read)
{
	double before = in->before / in->size, after = in->after / in->size;
	const char *when = !in->opened ? "before the run"
			   : read >= CACHED_LOST * in->size
				   ? "when it was first seen open, after it had partly been read"
				   : "when it was first seen open";
	struct movement *to;

	if (isnan(before)) {
		tell(m, MOVEMENT_INFO, "%s (%s): how much of it the page cache held cannot be told here.", in->path,
		     units_bytes(in->size).text);
		return;
	}
	to = tell(m, before < CACHED_COLD ? MOVEMENT_NOTE : MOVEMENT_INFO,
		  "%s (%s): %s of it was in the page cache %s%s", in->path, units_bytes(in->size).text,
		  units_percent(fmin(1, before)).text, when,
		  before >= CACHED_COLD || after < before + CACHED_LOST ? "."
		  : after >= CACHED_ALL ? ", so this was a cold start; the next one reads from memory."
					: ", so this was a cold start.");
	prove(to, "size_mib", in->size / MIB);
	prove(to, "cached_before_share", fmin(1, before));
	prove(to, "cached_after_share", after);
	if (!(before - after >= CACHED_LOST))
		return;
	to = tell(m, MOVEMENT_WARNING, "%s (%s): the page cache held %s of it %s and %s after it: pages were evicted.",
		  in->path, units_bytes(in->size).text, units_percent(fmin(1, before)).text, when,
		  units_percent(after).text);
	prove(to, "cached_before_share", before);
	prove(to, "cached_after_share", after);
}

#define INPUTS_MAX 256

static void tell_inputs(struct movements *m, const struct run *run)
{
	struct input *inputs = calloc(INPUTS_MAX, sizeof *inputs);
	char(*paths)[256] = calloc(INPUTS_MAX, sizeof *paths);
	size_t count = inputs && paths ? find_inputs(run, inputs, INPUTS_MAX, paths) : 0;
	double size = 0, before = 0;

	m->failed |= !inputs || !paths;
	for (size_t i = 0; i < count && i < INPUTS_SHOWN; i++)
		tell_input(m, &inputs[i], run->whole.read_bytes);
	for (size_t i = INPUTS_SHOWN; i < count; i++) {
		size += inputs[i].size;
		before += isnan(inputs[i].before) ? 0 : inputs[i].before;
	}
	if (count > INPUTS_SHOWN) {
		struct movement *to = tell(m, MOVEMENT_INFO,
					   "%zu more input files (%s): %s of them was in the page cache when first "
					   "looked at.",
					   count - INPUTS_SHOWN, units_bytes(size).text,
					   units_percent(before / size).text);

		prove(to, "size_mib", size / MIB);
		prove(to, "cached_before_share", before / size);
	}
	free(inputs);
	free(paths);
}

/* The phases with the most movement, in the order of time. */
static bool among_the_most(const struct run *run, size_t phase)
{
	const struct phase_figures *f = &run->figures[phase];
	double bytes = fmax(f->read_bytes, f->write_bytes);
	size_t more = 0;

	for (size_t i = 0; i < run->phases.count && more < PHASES_SHOWN; i++)
		more += fmax(run->figures[i].read_bytes, run->figures[i].write_bytes) > bytes;
	return more < PHASES_SHOWN;
}

static int by_level(const void *a, const void *b)
{
	const struct movement *x = *(const struct movement *const *)a, *y = *(const struct movement *const *)b;

	if (x->level != y->level)
		return (x->level < y->level) - (x->level > y->level);
	return (x > y) - (x < y);
}

/* The gravest first, otherwise as told. */
static struct movement *sorted(const struct movements *m)
{
	const struct movement **order = calloc(m->count + 1, sizeof *order);
	struct movement *items = calloc(m->count + 1, sizeof *items);

	for (size_t i = 0; order && i < m->count; i++)
		order[i] = &m->items[i];
	if (order && items) {
		qsort(order, m->count, sizeof *order, by_level);
		for (size_t i = 0; i < m->count; i++)
			items[i] = *order[i];
	} else {
		free(items);
		items = NULL;
	}
	free(order);
	return items;
}

int movement_judge(struct run *run, struct error *err)
{
	struct movements m = {0};
	struct movement *items;

	for (size_t i = 0; run->figures && i < run->phases.count; i++) {
		struct phase_facts p;

		phase_facts_find(run, i, &p);
		tell_refaults(&m, &p);
		tell_cache_share(&m, &p);
		if (!among_the_most(run, i))
			continue;
		tell_disk(&m, &p);
		tell_faults(&m, &p);
	}
	tell_swap(&m, run);
	tell_inputs(&m, run);
	items = m.failed ? NULL : sorted(&m);
	free(m.items);
	if (!items)
		return error_set(err, "out of memory for what moved");
	free(run->movements);
	run->movements = items;
	run->movement_count = m.count;
	return 0;
}
