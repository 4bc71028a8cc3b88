/* The call tree of a profile, made ready for summing up: what each place is called, which of its functions occur
 * there for the first time on the way from the root, and what a query wants to know of the way.
 *
 * The sampler's own frames are left out. Made once, whatever groups and threads there are. Inside src/model only. */
#ifndef ASSAY_MODEL_HOTSPOT_TREE_H
#define ASSAY_MODEL_HOTSPOT_TREE_H

#include <stdint.h>

#include "base/error.h"
#include "model/hotspot_names.h"
#include "model/hotspots.h"

#define TREE_ROOT 0u

enum tree_flags {
	TREE_INCLUDED = 1, /* a function or module on the way from the root is included by the query */
	TREE_EXCLUDED = 2,
	TREE_OURS = 4,     /* a frame of the sampler: stands for the place above it */
};

struct tree_node {
	uint32_t up;          /* the place above that is not ours; of the root itself the root */
	uint32_t self;        /* label of the innermost function; LABEL_NONE of the root */
	uint32_t module;      /* label in `modules` */
	uint32_t first, end;  /* in firsts[] */
	uint32_t above, below; /* with a focus: its caller and its callee on this way; LABEL_NONE: it is not on it */
	uint16_t depth;
	uint8_t flags;
};

struct hotspot_tree {
	struct row_names functions; /* or lines */
	struct row_names modules;
	struct tree_node *nodes; /* one per place of the profile */
	size_t count;
	uint32_t *firsts;      /* labels that occur for the first time on the way, node by node */
	uint32_t no_stack, no_module; /* labels for samples without a stack */
	uint32_t start, itself;       /* labels for where a focus has no caller or callee */
	bool found_focus;
};

/* *t starts as zeroes. With BY_MODULE firsts[] holds labels of modules, else of functions. */
int hotspot_tree_init(struct hotspot_tree *t, const struct profile *p, const struct hotspot_query *query,
		      struct error *err);
void hotspot_tree_release(struct hotspot_tree *t);

#endif
