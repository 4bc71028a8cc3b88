/* A merge from its folders to its file: rank by rank, so that no more than one rank is looked after at a time. */
#include "store/region_merge.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "store/region_merging.h"

void region_merge_result_init(struct region_merge_result *r)
{
	*r = (struct region_merge_result){0};
}

void region_merge_result_release(struct region_merge_result *r)
{
	for (size_t i = 0; i < r->note_count; i++)
		free(r->notes[i]);
	free(r->notes);
	free(r->missing);
	region_merge_result_init(r);
}

static void merging_release(struct merging *m)
{
	region_scatter_free(m->scatter);
	region_writer_free(m->writer);
	regions_release(&m->regions);
	region_machines_release(&m->machines);
	region_job_release(&m->job);
	free(m->ranks);
	free(m->order);
	free(m->part_of);
	free(m->killed.of);
	free(m->uncertain.of);
	free(m->unusable.of);
	free(m->by_wall.of);
	free(m->lossy.of);
	free(m->refused.of);
	free(m->refusal);
}

int merge_progress(struct merging *m, uint64_t work, struct error *err)
{
	m->done += work;
	if (m->options->stop && *m->options->stop)
		return error_set(err, "%s: interrupted", m->options->out);
	if (m->options->progress)
		m->options->progress(m->options->context, m->done < m->all ? m->done : m->all, m->all);
	return 0;
}

struct merge_columns {
	struct scatter_row *rows;
	int64_t *columns[REGION_COLUMNS];
};

static void columns_release(struct merge_columns *c)
{
	free(c->rows);
	for (size_t i = 0; i < REGION_COLUMNS; i++)
		free(c->columns[i]);
}

static int columns_make(const struct merging *m, struct merge_columns *c, struct error *err)
{
	static const enum region_column all[] = {REGION_START, REGION_END, REGION_THREAD, REGION_CALL, REGION_PARENT};
	size_t count = m->options->leave_out_ids ? 3 : 5;

	c->rows = malloc(MERGE_BLOCK * sizeof *c->rows);
	if (!c->rows)
		return error_set(err, "out of memory for %zu calls", MERGE_BLOCK);
	for (size_t i = 0; i < count; i++) {
		c->columns[all[i]] = malloc(MERGE_BLOCK * sizeof(int64_t));
		if (!c->columns[all[i]])
			return error_set(err, "out of memory for %zu calls", MERGE_BLOCK);
	}
	return 0;
}

static void split(const struct merge_columns *c, uint64_t first, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		c->columns[REGION_START][i] = c->rows[i].start;
		c->columns[REGION_END][i] = c->rows[i].end;
		c->columns[REGION_THREAD][i] = c->rows[i].thread;
		if (c->columns[REGION_CALL]) {
			c->columns[REGION_CALL][i] = (int64_t)(first + i);
			c->columns[REGION_PARENT][i] = c->rows[i].parent;
		}
	}
}

static int write_rows(struct merging *m, const struct merge_rank *r, struct error *err)
{
	CLEANUP(columns_release) struct merge_columns c = {0};

	if (columns_make(m, &c, err) < 0)
		return -1;
	for (uint64_t first = 0; first < r->rows; first += MERGE_BLOCK) {
		size_t n = r->rows - first < MERGE_BLOCK ? (size_t)(r->rows - first) : MERGE_BLOCK;

		if (region_scatter_read(m->scatter, first, n, c.rows, err) < 0)
			return -1;
		split(&c, first, n);
		if (region_writer_add(m->writer, (const int64_t *const *)c.columns, n, err) < 0 ||
		    merge_progress(m, n, err) < 0)
			return -1;
	}
	return 0;
}

/* The processes order[from, to). */
static int merge_rank(struct merging *m, size_t from, size_t to, struct error *err)
{
	CLEANUP(merge_rank_release) struct merge_rank r = {.rank = m->ranks[m->order[from]]};

	r.processes = calloc(to - from, sizeof *r.processes);
	if (!r.processes)
		return error_set(err, "out of memory for %zu processes", to - from);
	for (; r.process_count < to - from; r.process_count++)
		r.processes[r.process_count].log = &m->job.logs[m->order[from + r.process_count]];
	if (regions_add_rank(&m->regions, r.rank, err) < 0 || merge_survey(m, &r, err) < 0 ||
	    merge_threads(m, &r, err) < 0 || merge_place(m, &r, err) < 0 || write_rows(m, &r, err) < 0)
		return -1;
	return merge_parts(m, &r, err);
}

static int merge_ranks(struct merging *m, struct error *err)
{
	for (size_t from = 0, to; from < m->job.count; from = to) {
		for (to = from + 1; to < m->job.count && m->ranks[m->order[to]] == m->ranks[m->order[from]];)
			to++;
		if (merge_rank(m, from, to, err) < 0)
			return -1;
	}
	return 0;
}

static int make_file(struct merging *m, struct region_merge_result *ret, struct error *err)
{
	unsigned columns = 1u << REGION_THREAD;

	if (!m->options->leave_out_ids)
		columns |= 1u << REGION_CALL | 1u << REGION_PARENT;
	if (merge_find_ranks(m, err) < 0 || region_scatter_new(m->options->out, &m->scatter, err) < 0 ||
	    region_writer_new(m->options->out, columns, &m->writer, err) < 0)
		return -1;
	if (merge_ranks(m, err) < 0 || merge_facts(m, err) < 0 || merge_notes(m, err) < 0 ||
	    merge_result(m, ret, err) < 0)
		return -1;
	m->regions.columns |= 1u << REGION_START | 1u << REGION_END | columns;
	return region_writer_commit(m->writer, &m->regions, err);
}

int region_merge(const struct region_merge_options *o, struct region_merge_result *ret, struct error *err)
{
	CLEANUP(merging_release) struct merging m = {.options = o};

	region_job_init(&m.job);
	regions_init(&m.regions);
	if (merge_find_processes(&m, err) < 0)
		return -1;
	if (m.job.count == 0)
		return 1;
	return make_file(&m, ret, err);
}
