#include "record/call_graph.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "graph/graph_file.h"
#include "model/profile.h"
#include "model/warnings.h"
#include "record/elf_headers.h"
#include "store/graph_recording.h"
#include "symbol/symbols.h"

#define DELETED " (deleted)"

/* A function of the recording: its address in one process. */
struct place {
	uint64_t address;
	uint32_t location; /* of the profile; PROFILE_NONE: it has no module, or one of several */
	uint32_t node;     /* of the graph */
};

/* One process' functions in the order of addresses. */
struct places {
	struct place *items;
	size_t count;
};

struct building {
	const struct calls_recording *recording;
	struct graph *graph;
	struct profile profile; /* as a means to find names: functions are its locations */
	struct places *places;  /* of each process */
	struct warnings notes;
	struct error *err;
};

/* --- Modules. --- */

/* A file as it was mapped, with where its bytes are to be; in `headers` and `known` from the first look at it on. */
static bool is_same_file(const struct calls_module *m, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == m->device && st.st_ino == m->inode &&
	       (uint64_t)st.st_size == m->size &&
	       st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec == m->mtime_ns;
}

/* The file's own address of what is mapped at `address`; false where it cannot be told. */
static bool own_address(const struct calls_module *m, uint64_t address, uint64_t *ret)
{
	CLEANUP(fd_cleanup) int fd = m->size ? open(m->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	uint64_t offset = address - m->start + m->offset;
	struct elf_headers h;

	if (fd < 0 || !is_same_file(m, fd) || !elf_headers_read(fd, &h))
		return false;
	for (size_t i = 0; i < h.count; i++) {
		const Elf64_Phdr *p = &h.items[i];

		if (p->p_type == PT_LOAD && offset >= p->p_offset && offset - p->p_offset < p->p_filesz) {
			*ret = offset - p->p_offset + p->p_vaddr;
			return true;
		}
	}
	return false;
}

static bool is_same_module(const struct calls_module *a, const struct calls_module *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size && a->mtime_ns == b->mtime_ns &&
	       a->start - a->offset == b->start - b->offset && strcmp(a->path, b->path) == 0;
}

/* The module that the address was in; NULL: none is known, or code of several was there one after the other. */
static const struct calls_module *module_of(const struct calls_process *p, uint64_t address)
{
	const struct calls_module *found = NULL;

	for (size_t i = 0; i < p->module_count; i++) {
		const struct calls_module *m = &p->modules[i];

		if (address < m->start || address >= m->end)
			continue;
		if (found && !is_same_module(found, m))
			return NULL;
		found = m;
	}
	return found;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* The profile's module of that file, made where there is none; -1 with *err. */
static int profile_module_of(struct building *b, const struct calls_module *m)
{
	struct profile *p = &b->profile;
	struct profile_module like = {
		.kind = PROFILE_FILE,
		.path = m->path,
		.name = (char *)base_name(m->path),
		.device = m->device,
		.inode = m->inode,
		.size = m->size,
		.mtime_ns = m->mtime_ns,
	};

	for (size_t i = 0; i < p->module_count; i++)
		if (strcmp(p->modules[i].path, m->path) == 0 && p->modules[i].inode == m->inode &&
		    p->modules[i].device == m->device && p->modules[i].size == m->size &&
		    p->modules[i].mtime_ns == m->mtime_ns)
			return (int)i;
	return profile_add_module(p, &like, b->err);
}

/* --- Functions. --- */

static int by_address(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static int collect(const struct calls_process *p, struct places *ret, struct error *err)
{
	size_t kept = 0;

	ret->items = calloc(p->sum_count + 1, sizeof *ret->items);
	if (!ret->items)
		return error_set(err, "out of memory for %zu functions", p->sum_count);
	for (size_t i = 0; i < p->sum_count; i++)
		ret->items[i] = (struct place){.address = p->sums[i].callee, .location = PROFILE_NONE};
	qsort(ret->items, p->sum_count, sizeof *ret->items, by_address);
	for (size_t i = 0; i < p->sum_count; i++)
		if (kept == 0 || ret->items[i].address != ret->items[kept - 1].address)
			ret->items[kept++] = ret->items[i];
	ret->count = kept;
	return 0;
}

static struct place *find_place(const struct places *p, uint64_t address)
{
	const struct place key = {.address = address};

	return bsearch(&key, p->items, p->count, sizeof *p->items, by_address);
}

/* How far the functions of one mapping are from the file's own addresses: asked for once. */
struct bias {
	const struct calls_module *module;
	uint64_t bias;
	bool known;
	int index; /* of the profile's module */
};

static int locate(struct building *b, const struct calls_process *p, struct places *places)
{
	struct bias last = {0};

	for (size_t i = 0; i < places->count; i++) {
		struct place *place = &places->items[i];
		const struct calls_module *m = module_of(p, place->address);
		uint64_t own;
		int node;

		if (m && m != last.module) {
			last = (struct bias){.module = m, .index = profile_module_of(b, m)};
			if (last.index < 0)
				return -1;
			last.known = own_address(m, place->address, &own);
			last.bias = last.known ? place->address - own : 0;
			if (!last.known)
				warnings_add(&b->notes, "%s: its functions have no names: the file is gone, or is no "
					     "longer the one that ran.", m->path);
		}
		if (!m || !last.known)
			continue;
		node = profile_add_node(&b->profile, 0, (uint32_t)last.index, place->address - last.bias, b->err);
		if (node < 0)
			return -1;
		place->location = b->profile.nodes[node].location;
	}
	return 0;
}

/* "MODULE!?+0x1234": where in the file the code lies, or the address alone. */
static int name_place(struct building *b, const struct calls_process *p, struct place *place)
{
	const struct calls_module *m = module_of(p, place->address);
	CLEANUP(free_cleanup) char *name = NULL;

	if (asprintf(&name, "%s!?+0x%" PRIx64, m ? base_name(m->path) : "",
		     m ? place->address - m->start + m->offset : place->address) < 0) {
		name = NULL;
		return error_set(b->err, "out of memory for a name");
	}
	return graph_node(b->graph, "", SIZE_MAX, 0, name, SIZE_MAX, m ? base_name(m->path) : NULL, &place->node,
			  b->err);
}

static int name_function(struct building *b, const struct calls_process *p, struct place *place)
{
	const struct profile *profile = &b->profile;
	const struct profile_location *l;
	const struct profile_function *f;

	if (place->location == PROFILE_NONE)
		return name_place(b, p, place);
	l = &profile->locations[place->location];
	if (!l->count)
		return name_place(b, p, place);
	/* Behind the frames inlined at its first instruction stands the function itself. */
	f = &profile->functions[profile->frames[l->first + l->count - 1].function];
	if (!f->known)
		return name_place(b, p, place);
	return graph_node(b->graph, f->file ? f->file : "", SIZE_MAX, f->line, f->name, SIZE_MAX,
			  profile->modules[l->module].name, &place->node, b->err);
}

/* --- Figures. --- */

static void add_count(int64_t *to, uint64_t more)
{
	*to = more > (uint64_t)(INT64_MAX - *to) ? INT64_MAX : *to + (int64_t)more;
}

static int add_sums(struct building *b, const struct calls_process *p, const struct places *places)
{
	for (size_t i = 0; i < p->sum_count; i++) {
		const struct calls_sum *s = &p->sums[i];
		const struct place *callee = find_place(places, s->callee);
		const struct place *caller = s->caller ? find_place(places, s->caller) : NULL;
		struct graph_node *n = &b->graph->nodes[callee->node];
		struct graph_edge *e;

		add_count(&n->nc2, s->calls);
		add_count(&n->nc1, s->primitive);
		n->tin += s->self_ns;
		n->tall += s->total_ns;
		if (!caller)
			continue;
		e = graph_edge(b->graph, caller->node, callee->node, b->err);
		if (!e)
			return -1;
		add_count(&e->nc2, s->calls);
		add_count(&e->nc1, s->primitive);
		e->tin += s->self_ns;
		e->tall += s->total_ns;
	}
	return 0;
}

/* Added up as whole nanoseconds, which doubles hold exactly. */
static void make_seconds(struct graph *g)
{
	for (size_t i = 0; i < g->node_count; i++) {
		g->nodes[i].tin /= 1e9;
		g->nodes[i].tall /= 1e9;
	}
	for (size_t i = 0; i < g->edge_count; i++) {
		g->edges[i].tin /= 1e9;
		g->edges[i].tall /= 1e9;
	}
}

/* What is said once of all processes that it is true of: a program may have thousands of children. */
struct remark {
	size_t processes;
	uint64_t calls;
	int pid; /* of the first */
};

static void take_remark(struct remark *r, const struct calls_process *p, uint64_t calls)
{
	if (!calls)
		return;
	if (r->processes++ == 0)
		r->pid = p->pid;
	r->calls = calls > UINT64_MAX - r->calls ? UINT64_MAX : r->calls + calls;
}

static void put_remark(struct building *b, const struct remark *r, const char *what)
{
	if (r->processes == 1)
		warnings_add(&b->notes, "Process %d: %" PRIu64 " %s.", r->pid, r->calls, what);
	else if (r->processes)
		warnings_add(&b->notes, "Process %d and %zu more: %" PRIu64 " %s.", r->pid, r->processes - 1, r->calls,
			     what);
}

static void note_processes(struct building *b)
{
	struct remark cut = {0}, dropped = {0}, beyond = {0}, lost = {0};

	for (size_t i = 0; i < b->recording->count; i++) {
		const struct calls_process *p = &b->recording->processes[i];

		if (!p->sum_count)
			continue;
		take_remark(&cut, p, !p->ended);
		take_remark(&dropped, p, p->dropped);
		take_remark(&beyond, p, p->beyond);
		take_remark(&lost, p, p->lost);
	}
	if (cut.processes == 1)
		warnings_add(&b->notes, "Process %d was killed, called _exit, or became another program: its calls are "
			     "counted up to the last one that ended.", cut.pid);
	else if (cut.processes)
		warnings_add(&b->notes, "%zu processes (the first is %d) were killed, called _exit, or became other "
			     "programs: their calls are counted up to the last ones that ended.", cut.processes,
			     cut.pid);
	put_remark(b, &dropped, "calls found no room, and are left out with what they called");
	put_remark(b, &beyond, "calls were nested too deeply, and are left out");
	put_remark(b, &lost, "calls did not end by a return (longjmp, the end of a thread): their times are up to when "
		   "that was noticed");
}

static int build(struct building *b, const volatile int *hurry)
{
	const struct calls_recording *r = b->recording;
	struct symbols_options options = {.no_inlines = true, .hurry = hurry};
	struct error why;

	for (size_t i = 0; i < r->count; i++)
		if (collect(&r->processes[i], &b->places[i], b->err) < 0 ||
		    locate(b, &r->processes[i], &b->places[i]) < 0)
			return -1;
	if (symbols_resolve(&b->profile, &options, &b->notes, &why) < 0)
		warnings_add(&b->notes, "The functions have no names: %s.", why.text);
	for (size_t i = 0; i < r->count; i++) {
		for (size_t j = 0; j < b->places[i].count; j++)
			if (name_function(b, &r->processes[i], &b->places[i].items[j]) < 0)
				return -1;
		if (add_sums(b, &r->processes[i], &b->places[i]) < 0)
			return -1;
	}
	note_processes(b);
	for (size_t i = 0; i < b->notes.count; i++)
		if (graph_note(b->graph, "%s", b->notes.texts[i]) < 0)
			return error_set(b->err, "out of memory for a call graph");
	make_seconds(b->graph);
	return graph_finish(b->graph, b->err);
}

static int build_graph(const struct calls_recording *r, const volatile int *hurry, struct graph *ret, struct error *err)
{
	struct building b = {.recording = r, .graph = ret, .err = err};
	int result;

	profile_init(&b.profile);
	warnings_init(&b.notes);
	ret->source = "graph";
	b.places = calloc(r->count + 1, sizeof *b.places);
	result = !b.places ? error_set(err, "out of memory for a call graph") : graph_set_unit(ret, "s", 1, err);
	if (result == 0)
		result = build(&b, hurry);
	for (size_t i = 0; b.places && i < r->count; i++)
		free(b.places[i].items);
	free(b.places);
	warnings_release(&b.notes);
	profile_release(&b.profile);
	return result;
}

static bool has_calls(const struct calls_recording *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->processes[i].sum_count)
			return true;
	return false;
}

int call_graph_make(const char *folder, const char *path, const volatile int *hurry, struct graph *ret,
		    struct error *err)
{
	CLEANUP(calls_recording_release) struct calls_recording r;
	CLEANUP(warnings_release) struct warnings notes;
	CLEANUP(buf_release) struct buf text;

	calls_recording_init(&r);
	warnings_init(&notes);
	buf_init(&text);
	if (calls_recording_read(folder, &r, &notes, err) < 0)
		return -1;
	if (!r.count) {
		error_set(err, "no process has loaded libassay.so: a program that is linked statically, or runs with "
			       "another user's rights, cannot be recorded");
		return 1;
	}
	if (!has_calls(&r)) {
		error_set(err,
			  "no function was recorded: compile the program with -finstrument-functions (gcc, clang)%s%s",
			  notes.count ? "; " : "", notes.count ? notes.texts[0] : "");
		return 1;
	}
	for (size_t i = 0; i < notes.count; i++)
		if (graph_note(ret, "%s", notes.texts[i]) < 0)
			return error_set(err, "out of memory for a call graph");
	if (build_graph(&r, hurry, ret, err) < 0)
		return -1;
	graph_file_write(ret, &text);
	if (text.failed)
		return error_set(err, "%s: out of memory for a call graph", path);
	return fs_write_file(path, text.text, text.length, err);
}
