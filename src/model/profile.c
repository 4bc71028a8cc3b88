#include "model/profile.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of locations and of functions by what they are, so that each is there once; 0 is an empty slot, else the
 * number + 1. Made anew from the arrays whenever it has grown too full, and on the first use after it was dropped. */
struct slots {
	uint32_t *items;
	size_t room; /* a power of two, or 0 */
};

struct profile_index {
	struct slots locations, functions;
};

void profile_init(struct profile *p)
{
	*p = (struct profile){0};
}

static void drop_index(struct profile *p)
{
	if (p->index) {
		free(p->index->locations.items);
		free(p->index->functions.items);
	}
	free(p->index);
	p->index = NULL;
}

void profile_release(struct profile *p)
{
	for (size_t i = 0; i < p->image_count; i++) {
		free(p->images[i].exe);
		free(p->images[i].command);
		free(p->images[i].note);
	}
	for (size_t i = 0; i < p->thread_count; i++)
		free(p->threads[i].name);
	for (size_t i = 0; i < p->module_count; i++) {
		free(p->modules[i].path);
		free(p->modules[i].name);
		free(p->modules[i].note);
	}
	for (size_t i = 0; i < p->function_count; i++) {
		free(p->functions[i].name);
		free(p->functions[i].file);
	}
	for (size_t i = 0; i < p->unsampled_count; i++) {
		free(p->unsampled[i].name);
		free(p->unsampled[i].reason);
	}
	free(p->images);
	free(p->threads);
	free(p->modules);
	free(p->functions);
	free(p->frames);
	free(p->locations);
	free(p->nodes);
	free(p->samples);
	free(p->unsampled);
	drop_index(p);
	profile_init(p);
}

/* Room for `more` in an array of `count`, of `size` bytes each. Numbers are returned as int: below INT_MAX. */
static int grow(void *items, size_t *room, size_t count, size_t more, size_t size, struct error *err)
{
	void **array = items;
	size_t wanted = *room ? *room : 32;
	void *moved;

	if (more <= *room - count)
		return 0;
	if (more > INT_MAX - 1 - count)
		return error_set(err, "The profile has too many entries of one kind.");
	while (wanted < count + more)
		wanted *= 2;
	moved = reallocarray(*array, wanted, size);
	if (!moved)
		return error_set(err, "out of memory for %zu entries of a profile", wanted);
	*array = moved;
	*room = wanted;
	return 0;
}

#define GROW(p, what, err) grow(&(p)->what##s, &(p)->room.what##s, (p)->what##_count, 1, sizeof *(p)->what##s, err)

/* Copies a text; NULL is "". */
static int copy_text(char **ret, const char *text, struct error *err)
{
	*ret = strdup(text ? text : "");
	return *ret ? 0 : error_set(err, "out of memory for the names of a profile");
}

/* The same for two texts: both or none. */
static int copy_two(char **ret_first, const char *first, char **ret_second, const char *second, struct error *err)
{
	if (copy_text(ret_first, first, err) < 0)
		return -1;
	if (copy_text(ret_second, second, err) == 0)
		return 0;
	free(*ret_first);
	return -1;
}

int profile_add_image(struct profile *p, int pid, int ppid, int64_t t, const char *exe, const char *command,
		      struct error *err)
{
	struct profile_image image = {.pid = pid, .ppid = ppid, .t = t, .cpu_ns = -1, .unsampled_ns = 0};

	if (GROW(p, image, err) < 0 || copy_two(&image.exe, exe, &image.command, command, err) < 0)
		return -1;
	p->images[p->image_count] = image;
	return (int)p->image_count++;
}

int profile_add_thread(struct profile *p, uint32_t image, int tid, const char *name, struct error *err)
{
	struct profile_thread thread = {.image = image, .tid = tid};

	if (image >= p->image_count)
		return error_set(err, "A thread names program image %u of %zu.", image, p->image_count);
	if (GROW(p, thread, err) < 0 || copy_text(&thread.name, name, err) < 0)
		return -1;
	p->threads[p->thread_count] = thread;
	return (int)p->thread_count++;
}

int profile_rename_thread(struct profile *p, uint32_t thread, const char *name, struct error *err)
{
	char *copy;

	if (thread >= p->thread_count)
		return error_set(err, "A new name is for thread %u of %zu.", thread, p->thread_count);
	if (copy_text(&copy, name, err) < 0)
		return -1;
	free(p->threads[thread].name);
	p->threads[thread].name = copy;
	return (int)thread;
}

/* What is shown for it: the file's own name, without the mark that the kernel puts behind deleted ones. */
static int name_module(struct profile_module *m, const char *path, struct error *err)
{
	static const char *const names[] = {
		[PROFILE_VDSO] = "[vdso]",
		[PROFILE_ANON] = "[jit]",
		[PROFILE_KERNEL] = "[kernel]",
		[PROFILE_UNKNOWN] = "[unknown]",
	};
	static const char deleted[] = " (deleted)";
	const char *last = strrchr(path, '/');
	size_t length;

	if (m->kind != PROFILE_FILE)
		return copy_text(&m->name, names[m->kind], err);
	if (copy_text(&m->name, last && last[1] ? last + 1 : path, err) < 0)
		return -1;
	length = strlen(m->name);
	if (length >= sizeof deleted && strcmp(m->name + length - (sizeof deleted - 1), deleted) == 0)
		m->name[length - (sizeof deleted - 1)] = '\0';
	if (m->name[0])
		return 0;
	free(m->name);
	return copy_text(&m->name, "[unknown]", err);
}

int profile_add_module(struct profile *p, const struct profile_module *like, struct error *err)
{
	struct profile_module m = *like;
	const char *path = like->path ? like->path : "";

	m.note = NULL;
	if (m.kind > PROFILE_UNKNOWN || m.build_id_length > sizeof m.build_id)
		return error_set(err, "A module is of no known kind, or its build-id has %zu bytes.",
				 m.build_id_length);
	if ((m.kind == PROFILE_ANON || m.kind == PROFILE_UNKNOWN) && m.image >= p->image_count)
		return error_set(err, "A module names program image %u of %zu.", m.image, p->image_count);
	if (GROW(p, module, err) < 0 || copy_text(&m.path, path, err) < 0)
		return -1;
	if (like->name ? copy_text(&m.name, like->name, err) < 0 : name_module(&m, path, err) < 0) {
		free(m.path);
		return -1;
	}
	p->modules[p->module_count] = m;
	return (int)p->module_count++;
}

/* The finish of MurmurHash3: every bit of the key changes every bit of the result. */
static uint64_t spread(uint64_t key)
{
	key ^= key >> 33;
	key *= UINT64_C(0xff51afd7ed558ccd);
	key ^= key >> 33;
	key *= UINT64_C(0xc4ceb9fe1a85ec53);
	return key ^ key >> 33;
}

static uint64_t hash_location(uint32_t module, uint64_t address)
{
	return spread(address + spread(module));
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
	return hash;
}

static uint64_t hash_function(uint32_t module, const char *name, const char *file, uint32_t line)
{
	return spread(hash_text(hash_text(spread(module) + line, name), file));
}

static uint64_t hash_of(const struct profile *p, const struct slots *s, size_t item)
{
	const struct profile_function *f;

	if (s == &p->index->locations)
		return hash_location(p->locations[item].module, p->locations[item].address);
	f = &p->functions[item];
	return hash_function(f->module, f->name, f->file, f->line);
}

static void insert(struct slots *s, uint64_t hash, size_t item)
{
	size_t at = hash & (s->room - 1);

	while (s->items[at])
		at = (at + 1) & (s->room - 1);
	s->items[at] = (uint32_t)item + 1;
}

/* Room in the index for one more than the `count` that are there. */
static int index_room(struct profile *p, struct slots *s, size_t count, struct error *err)
{
	size_t room = s->room ? s->room : 256;

	if (s->room && 2 * (count + 1) < s->room)
		return 0;
	while (2 * (count + 1) >= room)
		room *= 2;
	free(s->items);
	s->items = calloc(room, sizeof *s->items);
	s->room = s->items ? room : 0;
	if (!s->items)
		return error_set(err, "out of memory for an index of %zu places of a profile", room);
	for (size_t i = 0; i < count; i++)
		insert(s, hash_of(p, s, i), i);
	return 0;
}

static int need_index(struct profile *p, struct error *err)
{
	if (!p->index)
		p->index = calloc(1, sizeof *p->index);
	return p->index ? 0 : error_set(err, "out of memory for the index of a profile");
}

/* The location's number, new where there is none; -1 on failure. */
static int location_at(struct profile *p, uint32_t module, uint64_t address, struct error *err)
{
	struct slots *s;
	size_t at;

	if (need_index(p, err) < 0 || GROW(p, location, err) < 0)
		return -1;
	s = &p->index->locations;
	if (index_room(p, s, p->location_count, err) < 0)
		return -1;
	for (at = hash_location(module, address) & (s->room - 1); s->items[at]; at = (at + 1) & (s->room - 1)) {
		const struct profile_location *l = &p->locations[s->items[at] - 1];

		if (l->module == module && l->address == address)
			return (int)s->items[at] - 1;
	}
	s->items[at] = (uint32_t)p->location_count + 1;
	p->locations[p->location_count] = (struct profile_location){.module = module, .address = address};
	return (int)p->location_count++;
}

static int need_root(struct profile *p, struct error *err)
{
	if (p->node_count)
		return 0;
	if (GROW(p, node, err) < 0)
		return -1;
	p->nodes[p->node_count++] = (struct profile_node){PROFILE_NONE, PROFILE_NONE};
	return 0;
}

int profile_add_node(struct profile *p, uint32_t parent, uint32_t module, uint64_t address, struct error *err)
{
	int location;

	if (need_root(p, err) < 0)
		return -1;
	if (parent >= p->node_count)
		return error_set(err, "A place in the call tree stands below place %u of %zu.", parent, p->node_count);
	if (module >= p->module_count)
		return error_set(err, "A place in the call tree names module %u of %zu.", module, p->module_count);
	location = location_at(p, module, address, err);
	if (location < 0 || GROW(p, node, err) < 0)
		return -1;
	p->nodes[p->node_count] = (struct profile_node){parent, (uint32_t)location};
	return (int)p->node_count++;
}

int profile_add_sample(struct profile *p, const struct profile_sample *sample, struct error *err)
{
	if (need_root(p, err) < 0)
		return -1;
	if (sample->thread >= p->thread_count)
		return error_set(err, "A sample names thread %u of %zu.", sample->thread, p->thread_count);
	if (sample->node >= p->node_count)
		return error_set(err, "A sample names place %u of %zu in the call tree.", sample->node, p->node_count);
	if (GROW(p, sample, err) < 0)
		return -1;
	p->samples[p->sample_count] = *sample;
	return (int)p->sample_count++;
}

int profile_add_unsampled(struct profile *p, int pid, int64_t cpu_ns, const char *name, const char *reason,
			  struct error *err)
{
	struct profile_unsampled u = {.pid = pid, .cpu_ns = cpu_ns};

	if (grow(&p->unsampled, &p->room.unsampled, p->unsampled_count, 1, sizeof *p->unsampled, err) < 0 ||
	    copy_two(&u.name, name, &u.reason, reason, err) < 0)
		return -1;
	p->unsampled[p->unsampled_count] = u;
	return (int)p->unsampled_count++;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

int profile_add_function(struct profile *p, uint32_t module, bool known, const char *name, const char *file,
			 uint32_t line, uint32_t *ret, struct error *err)
{
	struct profile_function f = {.module = module, .known = known, .line = line};
	struct slots *s;
	size_t at;

	if (module >= p->module_count)
		return error_set(err, "A function names module %u of %zu.", module, p->module_count);
	if (need_index(p, err) < 0 || GROW(p, function, err) < 0)
		return -1;
	s = &p->index->functions;
	if (index_room(p, s, p->function_count, err) < 0)
		return -1;
	for (at = hash_function(module, name, file, line) & (s->room - 1); s->items[at];
	     at = (at + 1) & (s->room - 1)) {
		const struct profile_function *g = &p->functions[s->items[at] - 1];

		if (g->module == module && g->known == known && g->line == line && same_text(g->name, name) &&
		    same_text(g->file, file)) {
			*ret = s->items[at] - 1;
			return 0;
		}
	}
	if (copy_text(&f.name, name, err) < 0)
		return -1;
	if (file && copy_text(&f.file, file, err) < 0) {
		free(f.name);
		return -1;
	}
	*ret = (uint32_t)p->function_count;
	s->items[at] = *ret + 1;
	p->functions[p->function_count++] = f;
	return 0;
}

int profile_set_frames(struct profile *p, uint32_t location, const struct profile_frame *frames, size_t count,
		       struct error *err)
{
	struct profile_location *l;

	if (location >= p->location_count)
		return error_set(err, "Names are for place %u of %zu.", location, p->location_count);
	l = &p->locations[location];
	if (l->count)
		return error_set(err, "Place %u of the profile has its names already.", location);
	for (size_t i = 0; i < count; i++)
		if (frames[i].function >= p->function_count)
			return error_set(err, "Place %u names function %u of %zu.", location, frames[i].function,
					 p->function_count);
	if (grow(&p->frames, &p->room.frames, p->frame_count, count, sizeof *p->frames, err) < 0)
		return -1;
	l->first = (uint32_t)p->frame_count;
	l->count = (uint32_t)count;
	if (count)
		memcpy(p->frames + p->frame_count, frames, count * sizeof *frames);
	p->frame_count += count;
	return 0;
}

/* By time; those of one moment by thread, so that the order does not depend on the sort. */
static int by_time(const void *a, const void *b)
{
	const struct profile_sample *x = a, *y = b;

	if (x->t != y->t)
		return x->t < y->t ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

int profile_sort(struct profile *p, struct error *err)
{
	bool sorted = true;

	if (need_root(p, err) < 0)
		return -1;
	drop_index(p);
	for (size_t i = 1; i < p->sample_count; i++)
		sorted &= by_time(&p->samples[i - 1], &p->samples[i]) <= 0;
	if (!sorted)
		qsort(p->samples, p->sample_count, sizeof *p->samples, by_time);
	return 0;
}
