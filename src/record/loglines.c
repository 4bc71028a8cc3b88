#include "record/loglines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "store/segments.h"

#define STREAMS 3
#define PIECE 65536

struct feed {
	struct line_splitter *splitters[STREAMS];
	int fds[STREAMS];
	const char *paths[STREAMS];
	char *piece; /* PIECE bytes, not on the stack, which may be small */
	const volatile int *hurry;
	struct warnings *warnings;
};

static void on_line(void *context, const struct log_line *line)
{
	engine_set_line(context, line);
}

/* One stretch of a log. Returns false where feeding should end. */
static bool feed_stretch(struct feed *f, unsigned stream, uint64_t offset, uint64_t length, int64_t t)
{
	while (length > 0) {
		size_t wanted = length < PIECE ? (size_t)length : PIECE;
		ssize_t got = pread(f->fds[stream], f->piece, wanted, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			warnings_add(f->warnings, "%s: shorter than its record says; what is missing was not parsed.",
				     f->paths[stream]);
			return true;
		}
		line_splitter_feed(f->splitters[stream], t, f->piece, (size_t)got);
		offset += (uint64_t)got;
		length -= (uint64_t)got;
		if (f->hurry && *f->hurry) {
			warnings_add(f->warnings, "The output was not parsed to its end: assay was interrupted.");
			return false;
		}
	}
	return true;
}

static void feed_by_record(struct feed *f, struct segment_reader *reader)
{
	struct segment_record record;
	const void *payload;
	struct error err;
	int got;

	while ((got = segment_reader_next(reader, &record, &payload, &err)) > 0) {
		const struct wire_chunk *chunk = payload;

		if (record.type != WIRE_CHUNK || record.used < sizeof *chunk || chunk->stream >= STREAMS ||
		    f->fds[chunk->stream] < 0)
			continue;
		if (!feed_stretch(f, chunk->stream, chunk->offset, chunk->length, chunk->t_last))
			return;
	}
	if (got < 0)
		warnings_add(f->warnings, "The times of the output are damaged; what came later was not parsed: %s.",
			     err.text);
}

static void feed_whole(struct feed *f, int64_t t)
{
	warnings_add(f->warnings, "When the output arrived is not known; phases cannot be told from it.");
	for (unsigned i = 0; i < STREAMS; i++) {
		off_t size = f->fds[i] < 0 ? 0 : lseek(f->fds[i], 0, SEEK_END);

		if (size > 0 && !feed_stretch(f, i, 0, (uint64_t)size, t))
			return;
	}
}

static void finish_splitters(struct feed *f, struct line_counts *total)
{
	for (unsigned i = 0; i < STREAMS; i++) {
		struct line_counts counts;

		if (f->fds[i] >= 0)
			close(f->fds[i]);
		if (!f->splitters[i])
			continue;
		line_splitter_end(f->splitters[i]);
		line_splitter_counts(f->splitters[i], &counts);
		total->lines += counts.lines;
		total->cut += counts.cut;
		total->invalid_utf8 += counts.invalid_utf8;
		total->binary += counts.binary;
		line_splitter_free(f->splitters[i]);
	}
}

/* A log that is no file could keep us waiting: a target may put anything into its run directory. */
static int open_log(const char *path, struct warnings *warnings)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0 && errno != ENOENT)
		warnings_add(warnings, "%s: %s: not parsed.", path, strerror(errno));
	if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)))
		return fd;
	warnings_add(warnings, "%s is not a regular file: not parsed.", path);
	close(fd);
	return -1;
}

bool loglines_feed(const struct rundir *dir, struct engine_set *set, int64_t end, const volatile int *hurry,
		   struct line_counts *ret_counts, struct warnings *warnings)
{
	CLEANUP(segment_reader_cleanup) struct segment_reader *reader = NULL;
	CLEANUP(free_cleanup) char *piece = malloc(PIECE);
	struct feed f = {
		.paths = {[WIRE_STDOUT] = dir->stdout_log,
			  [WIRE_STDERR] = dir->stderr_log,
			  [WIRE_TERMINAL] = dir->terminal_log},
		.piece = piece,
		.hurry = hurry,
		.warnings = warnings,
	};
	struct error err;
	bool timed;

	for (int i = 0; i < STREAMS; i++) {
		f.splitters[i] = line_splitter_new(i, on_line, set);
		f.fds[i] = piece && f.splitters[i] ? open_log(f.paths[i], warnings) : -1;
	}
	timed = segment_reader_open(dir->output_seg, SEGMENT_KIND_OUTPUT, &reader, &err) == 0;
	if (timed)
		feed_by_record(&f, reader);
	else
		feed_whole(&f, end);
	*ret_counts = (struct line_counts){0};
	finish_splitters(&f, ret_counts);
	return timed;
}
