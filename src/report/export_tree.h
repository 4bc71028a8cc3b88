/* The call tree of a profile as viewers want it: one place per function (or line of a function) below its caller, where
 * the profile has one per address; inlined functions are places of their own, and the sampler's are left out. */
#ifndef ASSAY_REPORT_EXPORT_TREE_H
#define ASSAY_REPORT_EXPORT_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "report/export_samples.h"

/* Functions are counted on from those of the profile: then one per module for its code without a name, and last one for
 * samples without a stack. */
struct export_frame {
	uint32_t function;
	uint32_t line; /* 0: not known, or not asked for */
};

struct export_node {
	uint32_t parent, frame; /* of node 0, the root: no frame */
};

struct export_tree {
	const struct profile *profile;
	struct export_frame *frames;
	struct export_node *nodes; /* a parent stands before its children */
	uint32_t *node_of;         /* by node of the profile; 0: none of its samples was chosen */
	size_t frame_count, node_count;
	/* Hidden from outside. */
	size_t frame_room, node_room;
	uint32_t *same; /* functions of one name in one module are one function: its number */
};

void export_tree_init(struct export_tree *t);
void export_tree_release(struct export_tree *t);

/* Holds what is on the stacks of these samples; *ret must be initialised. Returns enum export_problem. */
int export_tree_build(struct export_tree *ret, const struct profile *p, const struct export_samples *s, bool lines,
		      struct error *err);

/* Sets flags[i] for each node of the profile that is on the stack of one of these samples. */
void export_mark_nodes(const struct profile *p, const struct export_samples *s, bool *flags);

bool export_is_sampler(const struct profile *p, uint32_t module);

/* The number that stands for code of that module without a name, and for samples without a stack. */
uint32_t export_unnamed(const struct profile *p, uint32_t module);
uint32_t export_no_stack(const struct profile *p);

/* Of a number as in struct export_frame: name as it stands, file (NULL: not known), where it begins, and its module
 * (PROFILE_NONE: none). The name of unnamed code is made in *scratch, which is cleared first. */
const char *export_function_name(const struct profile *p, uint32_t function, struct buf *scratch);
const char *export_function_file(const struct profile *p, uint32_t function);
uint32_t export_function_line(const struct profile *p, uint32_t function);
uint32_t export_function_module(const struct profile *p, uint32_t function);

/* The frame's name; with its line "name (file.c:12)". Made in *scratch where it has one. */
const char *export_frame_name(const struct export_tree *t, uint32_t frame, struct buf *scratch);

#endif
