/* A small profile made by hand, for tests: functions by name, stacks as texts "main;work;leaf". */
#ifndef ASSAY_TESTS_MADE_PROFILE_H
#define ASSAY_TESTS_MADE_PROFILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/profile.h"

#define MADE_HZ 100

/* One image, threads "main" and "worker 1".."worker N", modules "prog" (0) and "libdeep.so" (1). */
static inline void made_profile(struct profile *p, int workers)
{
	struct error err;
	char name[32];

	profile_init(p);
	p->hz = MADE_HZ;
	p->period_s = 1.0 / MADE_HZ;
	assert_int_equal(profile_add_image(p, 100, 1, 0, "/usr/bin/prog", "prog --fast", &err), 0);
	assert_int_equal(profile_add_thread(p, 0, 100, "main", &err), 0);
	for (int i = 1; i <= workers; i++) {
		snprintf(name, sizeof name, "worker %d", i);
		assert_int_equal(profile_add_thread(p, 0, 100 + i, name, &err), i);
	}
	assert_int_equal(profile_add_module(p, &(struct profile_module){.path = (char *)"/usr/bin/prog"}, &err), 0);
	assert_int_equal(
		profile_add_module(p, &(struct profile_module){.path = (char *)"/usr/lib/libdeep.so"}, &err), 1);
}

/* The place of a function (one address each) below `parent`; those whose names begin with "lib" are in module 1, those
 * that begin with "?" get no name. "a+b" is b inlined into a. */
static inline uint32_t made_frame(struct profile *p, uint32_t parent, const char *name)
{
	uint32_t module = strncmp(name, "lib", 3) == 0;
	uint64_t address = 4096;
	struct profile_frame frames[8];
	size_t count = 0;
	struct error err;
	char copy[128], *word = copy;
	int node;

	for (const char *c = name; *c; c++)
		address = address * 131 + (unsigned char)*c;
	node = profile_add_node(p, parent, module, address, &err);
	assert_true(node > 0);
	if (*name == '?' || p->locations[p->nodes[node].location].count)
		return (uint32_t)node;
	snprintf(copy, sizeof copy, "%s", name);
	for (char *part; (part = strsep(&word, "+")); count++) {
		memmove(frames + 1, frames, count * sizeof *frames); /* the innermost one first */
		assert_int_equal(profile_add_function(p, module, true, part, "src/made.c", 7, &frames[0].function,
						      &err),
				 0);
		frames[0].line = 11;
	}
	assert_int_equal(profile_set_frames(p, p->nodes[node].location, frames, count, &err), 0);
	return (uint32_t)node;
}

/* `count` samples of weight `weight` each, at t, t+1, ... */
static inline void made_samples(struct profile *p, int64_t t, uint32_t thread, const char *stack, unsigned count,
				uint32_t weight)
{
	uint32_t node = 0;
	struct error err;
	char copy[1024], *rest = copy;

	snprintf(copy, sizeof copy, "%s", stack);
	for (char *name; *copy && (name = strsep(&rest, ";"));)
		node = made_frame(p, node, name);
	for (unsigned i = 0; i < count; i++) {
		struct profile_sample sample = {t + i, thread, node, weight, PROFILE_COMPLETE};

		assert_true(profile_add_sample(p, &sample, &err) >= 0);
	}
}

#endif
