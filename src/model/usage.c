#include "model/usage.h"

#include "model/process.h"

static int64_t *last_reading(struct process *p, enum usage kind)
{
	switch (kind) {
	case USAGE_USER:
		return &p->user_ns;
	case USAGE_SYSTEM:
		return &p->system_ns;
	case USAGE_CPU:
		return &p->clock_ns;
	case USAGE_MINOR_FAULTS:
		return &p->minor_faults;
	case USAGE_MAJOR_FAULTS:
		return &p->major_faults;
	case USAGE_READ_BYTES:
		return &p->read_bytes;
	case USAGE_WRITE_BYTES:
		return &p->write_bytes;
	case USAGE_READ_CHARS:
		return &p->read_chars;
	case USAGE_WRITE_CHARS:
		return &p->write_chars;
	case USAGE_READ_CALLS:
		return &p->read_calls;
	case USAGE_WRITE_CALLS:
		return &p->write_calls;
	case USAGE_KINDS:
		break;
	}
	return NULL;
}

/* Moves *last up to `value` and returns by how much; a first reading counts from 0. */
static int64_t growth(int64_t *last, int64_t value)
{
	int64_t from = *last > 0 ? *last : 0;

	if (value > *last)
		*last = value;
	return value > from ? value - from : 0;
}

static void wait_for_round(struct process_table *t, struct process *p, enum usage kind, int64_t grown)
{
	p->accounts[kind].fresh[t->round & 1] += grown;
	if (grown > 0)
		p->has_fresh = t->has_fresh = true;
}

void usage_read(struct process_table *t, struct process *p, enum usage kind, int64_t value)
{
	int64_t grown = growth(last_reading(p, kind), value);

	if (kind >= USAGE_READ_BYTES)
		wait_for_round(t, p, kind, grown);
	else
		t->used[kind] += grown;
}

void usage_read_inherited(struct process_table *t, struct process *p, enum usage kind, int64_t value)
{
	wait_for_round(t, p, kind, growth(&p->accounts[kind].inherited, value));
}

void usage_reaped(struct process_table *t, enum usage kind, int64_t value)
{
	t->reaper[kind].fresh[t->round & 1] += value;
	t->has_fresh = true;
}

void usage_reaped_in_all(struct process_table *t, enum usage kind, int64_t total)
{
	usage_reaped(t, kind, growth(&t->reaper[kind].inherited, total));
}

static void settle(struct process_table *t, struct usage_account *a, enum usage kind, unsigned round)
{
	int64_t fresh = a->fresh[round], known = fresh < a->owed ? fresh : a->owed;

	a->fresh[round] = 0;
	a->owed -= known;
	t->used[kind] += fresh - known;
}

static void settle_reaper(struct process_table *t, unsigned earlier)
{
	for (enum usage kind = 0; kind < USAGE_KINDS; kind++) {
		settle(t, &t->reaper[kind], kind, earlier);
		t->has_fresh = t->has_fresh || t->reaper[kind].fresh[t->round & 1] > 0;
	}
}

void usage_end_round(struct process_table *t)
{
	unsigned earlier = ~t->round & 1;
	bool had_fresh = t->has_fresh;

	t->has_fresh = false;
	if (had_fresh)
		settle_reaper(t, earlier);
	for (size_t i = 0; had_fresh && i < t->count; i++) {
		struct process *p = &t->items[i];

		if (!p->has_fresh)
			continue;
		p->has_fresh = false;
		for (enum usage kind = 0; kind < USAGE_KINDS; kind++) {
			settle(t, &p->accounts[kind], kind, earlier);
			p->has_fresh = p->has_fresh || p->accounts[kind].fresh[t->round & 1] > 0;
		}
		t->has_fresh = t->has_fresh || p->has_fresh;
	}
	t->round++;
}

void usage_died(struct process_table *t, struct process *p)
{
	struct process *parent = process_find(t, p->parent);
	struct usage_account *heir;

	for (enum usage kind = 0; kind < USAGE_KINDS; kind++) {
		int64_t own = *last_reading(p, kind);

		settle(t, &p->accounts[kind], kind, 0);
		settle(t, &p->accounts[kind], kind, 1);
		heir = parent && parent != p ? &parent->accounts[kind] : &t->reaper[kind];
		/* What it owes it has inherited since it was last read, or its heir will from somebody else. */
		heir->owed += (own > 0 ? own : 0) + p->accounts[kind].inherited + p->accounts[kind].owed;
		p->accounts[kind].owed = 0;
	}
	p->has_fresh = false;
}
