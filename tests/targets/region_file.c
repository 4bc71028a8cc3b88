/* What tests need of files of regions: `dump FILE` prints one as lines of text, `copy FILE OUT` writes it as layout 2,
 * `old FILE OUT` as layout 1. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/region_writer.h"

#define AT_ONCE 50000u

static int dump_calls(struct region_file *f, struct error *err)
{
	const struct regions *r = region_file_regions(f);

	for (uint64_t row = 0; row < r->call_count; row++) {
		printf("call");
		for (enum region_column c = 0; c < REGION_COLUMNS; c++) {
			int64_t value;

			if (region_file_read(f, c, row, 1, &value, err) < 0)
				return -1;
			printf(" %" PRId64, value);
		}
		putchar('\n');
	}
	return 0;
}

static int dump(struct region_file *f, struct error *err)
{
	const struct regions *r = region_file_regions(f);

	printf("layout %u columns %x calls %" PRIu64 "\n", r->layout, r->columns, r->call_count);
	for (size_t i = 0; i < r->rank_count; i++)
		printf("rank %" PRIu32 "\n", r->ranks[i]);
	for (size_t i = 0; i < r->part_count; i++) {
		const struct region_part *p = &r->parts[i];

		printf("part %" PRIu32 " %s|%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "|%" PRId64 " %" PRId64
		       "|%s|%s|%s|%s|%" PRId64 " %.17g\n",
		       p->rank, r->names[p->region], p->first, p->count, p->calls, p->dropped, p->exclusive, p->line,
		       p->file, p->text, p->tags, p->metadata, p->summary.total, p->summary.mean);
	}
	for (size_t i = 0; i < r->thread_count; i++)
		printf("thread %" PRIu32 " %" PRId64 " %" PRId64 " %d %" PRId64 " %s\n", r->threads[i].rank,
		       r->threads[i].index, r->threads[i].native_id, r->threads[i].daemon, r->threads[i].cpu,
		       r->threads[i].name);
	for (size_t i = 0; i < r->fact_count; i++)
		printf("fact %s=%s\n", r->facts[i].key, r->facts[i].value);
	for (size_t i = 0; i < r->note_count; i++)
		printf("note %s\n", r->notes[i]);
	return dump_calls(f, err);
}

static int copy_rows(struct region_file *f, struct region_writer *w, int64_t *const rows[REGION_COLUMNS],
		     struct error *err)
{
	const struct regions *r = region_file_regions(f);
	const int64_t *columns[REGION_COLUMNS];

	for (uint64_t at = 0; at < r->call_count; at += AT_ONCE) {
		uint64_t left = r->call_count - at, step = left < AT_ONCE ? left : AT_ONCE;

		for (enum region_column c = 0; c < REGION_COLUMNS; c++) {
			columns[c] = r->columns & 1u << c ? rows[c] : NULL;
			if (columns[c] && region_file_read(f, c, at, step, rows[c], err) < 0)
				return -1;
		}
		if (region_writer_add(w, columns, step, err) < 0)
			return -1;
	}
	return 0;
}

static int copy(struct region_file *f, const char *out, struct error *err)
{
	static int64_t rows[REGION_COLUMNS][AT_ONCE];
	CLEANUP(region_writer_cleanup) struct region_writer *w = NULL;
	int64_t *columns[REGION_COLUMNS];

	for (enum region_column c = 0; c < REGION_COLUMNS; c++)
		columns[c] = rows[c];
	return region_writer_new(out, region_file_regions(f)->columns, &w, err) < 0 ||
			       copy_rows(f, w, columns, err) < 0 ||
			       region_writer_commit(w, region_file_regions(f), err) < 0
		       ? -1
		       : 0;
}

static int old(struct region_file *f, const char *out, struct error *err)
{
	CLEANUP(free_cleanup) char *lost = NULL;

	if (region_layout1_write(f, out, &lost, err) < 0)
		return -1;
	if (lost)
		puts(lost);
	return 0;
}

int main(int argc, char **argv)
{
	CLEANUP(region_file_cleanup) struct region_file *f = NULL;
	struct error err = {{0}};
	int result = -1;

	if (argc < 3 || region_file_open(argv[2], &f, &err) < 0) {
		fprintf(stderr, "%s\n", argc < 3 ? "usage: dump FILE | copy FILE OUT | old FILE OUT" : err.text);
		return 2;
	}
	if (strcmp(argv[1], "dump") == 0)
		result = dump(f, &err);
	else if (strcmp(argv[1], "copy") == 0 && argc == 4)
		result = copy(f, argv[3], &err);
	else if (strcmp(argv[1], "old") == 0 && argc == 4)
		result = old(f, argv[3], &err);
	if (result < 0)
		fprintf(stderr, "%s\n", err.text);
	return result < 0 ? 2 : 0;
}
