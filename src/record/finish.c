#include "record/finish.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fs.h"
#include "engine/engine.h"
#include "exec/machine.h"
#include "record/figures.h"
#include "record/loglines.h"
#include "record/markers.h"
#include "store/segments.h"
#include "store/timeline_file.h"

#define MARKS_MAX 10000
#define MARKERS_FILE_MAX ((size_t)64 << 20)

/* What one pass over the monitor segment tells beside the points. */
struct monitor_facts {
	struct marks marks;
	uint64_t marks_end; /* how much of the markers file they cover */
	uint64_t marks_lost;
	int64_t last_t;
};

static int add_mark(struct monitor_facts *facts, int64_t t, const char *name, size_t length, struct error *err)
{
	char word[PHASE_NAME_MAX] = "";

	if (facts->marks.count >= MARKS_MAX) {
		facts->marks_lost++;
		return 0;
	}
	if (length < sizeof word)
		memcpy(word, name, length);
	return marks_add(&facts->marks, t, phase_group_of(word), name, length, err);
}

static double seconds_or_missing(int64_t ns)
{
	return ns < 0 ? NAN : (double)ns / 1e9;
}

static double or_missing(int64_t value)
{
	return value < 0 ? NAN : (double)value;
}

/* Keeps the processes with the most CPU time, in that order. */
static void show_process(struct run *run, const struct run_process *row)
{
	size_t at = run->shown_count;

	while (at > 0 && !(run->shown[at - 1].cpu_s >= row->cpu_s || isnan(row->cpu_s)))
		at--;
	if (at >= RUN_PROCESSES_SHOWN)
		return;
	run->shown_count += run->shown_count < RUN_PROCESSES_SHOWN;
	memmove(run->shown + at + 1, run->shown + at, (run->shown_count - at - 1) * sizeof *run->shown);
	run->shown[at] = *row;
}

static void note_process(struct run *run, const struct wire_process *p, uint32_t used)
{
	const char *text = (const char *)(p + 1);
	size_t length = used - sizeof *p, comm = strnlen(text, length);
	struct run_process row = {
		.pid = p->pid,
		.ppid = p->ppid,
		.start_s = fmax(0, (double)(p->first_seen - run->start) / 1e9),
		.end_s = (double)(p->last_seen - run->start) / 1e9,
		.cpu_user_s = seconds_or_missing(p->user_ns),
		.cpu_system_s = seconds_or_missing(p->system_ns),
		.rss_peak = or_missing(p->rss_peak),
		.anon_peak = or_missing(p->anon_peak),
		.threads_peak = or_missing(p->threads_peak),
		.read_bytes = or_missing(p->read_bytes),
		.write_bytes = or_missing(p->write_bytes),
	};

	row.cpu_s = row.cpu_user_s + row.cpu_system_s;
	snprintf(row.comm, sizeof row.comm, "%.*s", (int)comm, text);
	if (comm < length)
		snprintf(row.command, sizeof row.command, "%.*s", (int)(length - comm - 1), text + comm + 1);
	show_process(run, &row);
}

/* A record that is too short for its type is passed over: a newer assay may write other ones. */
static int note_record(struct monitor_facts *facts, struct run *run, enum finish_mode mode,
		       const struct segment_record *r, const void *payload, struct error *err)
{
	if (r->type == WIRE_MARK && r->used > sizeof(struct wire_mark)) {
		const struct wire_mark *mark = payload;

		facts->marks_end = mark->end;
		/* One without a time of its own was seen a little after it was made, perhaps after the end. */
		return add_mark(facts, mark->seen && mark->t > run->end && run->end ? run->end : mark->t,
				(const char *)(mark + 1), r->used - sizeof *mark, err);
	}
	if (r->type == WIRE_POINTS && r->used >= sizeof(struct wire_points))
		facts->last_t = ((const struct wire_points *)payload)->t;
	if (r->type == WIRE_PROCESS && r->used > sizeof(struct wire_process)) {
		note_process(run, payload, r->used);
		run->processes += mode == FINISH_RECOVERED;
	}
	if (mode == FINISH_RECOVERED && r->type == WIRE_NOTE)
		warnings_add(&run->warnings, "%.*s", (int)r->used, (const char *)payload);
	return 0;
}

static int read_monitor(struct segment_reader *reader, struct monitor_facts *facts, struct run *run,
			enum finish_mode mode, struct error *err)
{
	struct segment_record record;
	const void *payload;
	int got;

	while ((got = segment_reader_next(reader, &record, &payload, err)) > 0)
		if (note_record(facts, run, mode, &record, payload, err) < 0)
			return -1;
	return got;
}

/* What the helper's segment tells of the command and of all processes that it reaped. */
struct exits {
	int64_t start, end; /* end: of the last exit or output */
	int64_t user_ns, system_ns, max_rss, count;
	bool command_ended;
	int status;
};

static void note_exit(struct exits *x, const struct wire_exit *e)
{
	x->user_ns += e->user_ns;
	x->system_ns += e->system_ns;
	x->max_rss = e->max_rss > x->max_rss ? e->max_rss : x->max_rss;
	x->end = e->t > x->end ? e->t : x->end;
	x->count++;
	if (e->is_command) {
		x->command_ended = true;
		x->status = e->status;
	}
}

static int read_exits(const char *path, struct exits *x, struct error *err)
{
	CLEANUP(segment_reader_cleanup) struct segment_reader *reader = NULL;
	struct segment_record record;
	const void *payload;
	int got;

	if (segment_reader_open(path, SEGMENT_KIND_OUTPUT, &reader, err) < 0)
		return -1;
	while ((got = segment_reader_next(reader, &record, &payload, err)) > 0) {
		if (record.type == WIRE_START && record.used >= sizeof(struct wire_start)) {
			x->start = ((const struct wire_start *)payload)->t;
		} else if (record.type == WIRE_CHUNK && record.used >= sizeof(struct wire_chunk)) {
			const struct wire_chunk *chunk = payload;

			x->end = chunk->t_last > x->end ? chunk->t_last : x->end;
		} else if (record.type == WIRE_EXIT && record.used >= sizeof(struct wire_exit)) {
			note_exit(x, payload);
		}
	}
	return got;
}

/* The living recorder has heard of all exits but those that came faster than it could listen. */
static void take_exits(const struct rundir *dir, enum finish_mode mode, struct run *run)
{
	struct exits x = {0};
	struct error err;

	if (read_exits(dir->output_seg, &x, &err) < 0 && mode == FINISH_RECOVERED)
		warnings_add(&run->warnings, "How the command ended is not fully known: %s.", err.text);
	if (x.count && !((double)(x.user_ns + x.system_ns) / 1e9 <= run->cpu_user_s + run->cpu_system_s)) {
		run->cpu_user_s = (double)x.user_ns / 1e9;
		run->cpu_system_s = (double)x.system_ns / 1e9;
	}
	if (x.count)
		run->max_rss_process = fmax(run->max_rss_process, (double)x.max_rss);
	if (mode != FINISH_RECOVERED)
		return;
	run->start = x.start;
	run->end = x.end;
	if (!x.start)
		warnings_add(&run->warnings, "The command had not been started yet, as far as is known.");
	if (x.command_ended) {
		run->signo = WIFSIGNALED(x.status) ? WTERMSIG(x.status) : 0;
		run->exit_code = WIFSIGNALED(x.status) ? -1 : WEXITSTATUS(x.status);
	}
}

/* Lines that were appended to the markers file after the recorder had read it for the last time. */
static int read_late_marks(const struct rundir *dir, struct monitor_facts *facts, struct run *run, struct error *err)
{
	CLEANUP(buf_release) struct buf text;
	size_t untimed = 0;

	buf_init(&text);
	if (fs_read_file(dir->markers_log, MARKERS_FILE_MAX, &text, NULL) < 0)
		return 0; /* the target may have removed it: then there is nothing to add */
	for (size_t at = facts->marks_end; at < text.length;) {
		const char *line = text.text + at, *newline = memchr(line, '\n', text.length - at), *name;
		size_t length = newline ? (size_t)(newline - line) : text.length - at, name_length;
		int64_t t;
		enum marker_time from;

		at += length + 1;
		if (!marker_parse(line, length, run->end, run->wall_start_ns - run->start, &t, &name, &name_length,
				  &from))
			continue;
		untimed += from == MARKER_SEEN || from == MARKER_FUTURE;
		if (add_mark(facts, t, name, name_length, err) < 0)
			return -1;
	}
	if (untimed)
		warnings_add(&run->warnings, "%zu phase mark%s came when nobody was watching; %s put at the end.",
			     untimed, untimed == 1 ? "" : "s", untimed == 1 ? "it is" : "they are");
	return 0;
}

/* The command's words, as far as begin.json has them: masked, which no parser minds. */
static char **command_words(const json_t *begin)
{
	const char *command = json_get_text(begin, "command", "");
	size_t count = 1;
	char **words, *copy, *save, *word;

	for (const char *c = command; *c; c++)
		count += *c == ' ';
	words = calloc(count + 1, sizeof *words);
	copy = words ? strdup(command) : NULL;
	count = 0;
	for (word = copy ? strtok_r(copy, " ", &save) : NULL; word; word = strtok_r(NULL, " ", &save))
		words[count++] = strdup(word);
	free(copy);
	return words;
}

/* What an engine's log was like matters only where a parser read it. */
static void note_log(struct run *run, const struct line_counts *counts)
{
	for (size_t i = 0; i < run->engine.warnings.count; i++)
		warnings_add(&run->warnings, "%s", run->engine.warnings.texts[i]);
	if (counts->cut)
		warnings_add(&run->warnings,
			     "Lines of the output that were longer than %d bytes, and were cut: %" PRIu64 ".",
			     LOG_LINE_MAX, counts->cut);
	if (counts->invalid_utf8)
		warnings_add(&run->warnings, "Lines of the output that were not valid UTF-8: %" PRIu64 ".",
			     counts->invalid_utf8);
	if (counts->binary)
		warnings_add(&run->warnings, "Lines of the output that held control bytes: %" PRIu64 ".",
			     counts->binary);
}

static int read_engine(const struct rundir *dir, const json_t *begin, const volatile int *hurry, struct run *run,
		       struct error *err)
{
	const char *name = json_get_text(json_object_get(begin, "options"), "engine", "auto");
	char **words;
	struct engine_context context = {.start = run->start, .end = run->end};
	struct line_counts counts = {0};
	struct engine_set *set;
	int failed = -1;

	if (strcmp(name, "none") == 0)
		return 0;
	words = command_words(begin);
	context.argv = words;
	set = words ? engine_set_new(name, &context) : NULL;
	if (set) {
		bool timed = loglines_feed(dir, set, run->end, hurry, &counts, &run->warnings);

		failed = engine_set_finish(set, &run->engine, err);
		if (!timed)
			marks_release(&run->engine.marks);
		engine_set_free(set);
	} else {
		error_set(err, "out of memory for the parser '%s'", name);
	}
	for (char **w = words; w && *w; w++)
		free(*w);
	free(words);
	run->has_engine = !failed && run->engine.known > 0;
	if (!failed && !run->has_engine && strcmp(name, "auto") != 0)
		warnings_add(&run->warnings, "Nothing in the output is known to the parser '%s'.", name);
	if (run->has_engine)
		note_log(run, &counts);
	return failed;
}

static int find_phases(struct run *run, const struct monitor_facts *facts, struct error *err)
{
	const struct marks *marks = facts->marks.count ? &facts->marks : &run->engine.marks;

	if (facts->marks_lost)
		warnings_add(&run->warnings, "%" PRIu64 " phase marks past the %dth were dropped.", facts->marks_lost,
			     MARKS_MAX);
	/* Whoever sets marks wants to see each; of lines that came in one piece only the last tells a state. */
	return phases_from_marks(&run->phases, marks, run->start, run->end, "start", marks == &facts->marks,
				 &run->warnings, err);
}

/* Peaks of memory from ticks, refined by what the kernel kept of a single process. */
static void refine_memory(struct run *run)
{
	double max_rss = run->max_rss_process, file = run->whole.file_peak;
	bool one = run->processes == 1 && run->processes_exact && !run->survivors;

	run->rss_peak = fmax(run->whole.rss_peak, max_rss);
	run->anon_peak = run->whole.anon_peak;
	/* The kernel's counters are a little behind on each CPU, so a tick may show more than the mark. */
	if (one && max_rss >= 0.99 * run->whole.rss_peak) {
		strcpy(run->rss_kind, "high-water mark of the one process");
		/* At the mark, file pages were at most as many as ever. */
		strcpy(run->anon_kind, "largest at any tick");
		if (max_rss - file > run->anon_peak) {
			run->anon_peak = max_rss - file;
			strcpy(run->anon_kind, "high-water mark less the file pages seen");
		}
		return;
	}
	strcpy(run->anon_kind, "largest sum over the tree at one tick");
	if (max_rss > run->whole.rss_peak || isnan(run->whole.rss_peak))
		strcpy(run->rss_kind, "high-water mark of the largest process");
	else
		strcpy(run->rss_kind, "largest sum over the tree at one tick");
}

/* A killed recorder counted nothing: what the last points and the processes' records say has to do. */
/* As record.c says it of a run that ends by itself. */
static void note_machine_before(struct run *run, const json_t *begin)
{
	CLEANUP(buf_release) struct buf text;
	const json_t *reasons = json_object_get(json_object_get(begin, "machine_before"), "reasons");
	const json_t *reason;
	size_t i;

	buf_init(&text);
	json_array_foreach(reasons, i, reason)
		if (json_is_string(reason))
			buf_printf(&text, "%s%s", text.length ? "; " : "", json_string_value(reason));
	if (text.length)
		warnings_add(&run->warnings, "The machine was not quiet before the run: %s.", text.text);
}

static void fill_recovered(struct run *run, const json_t *begin)
{
	run->status = RUN_PARTIAL;
	run->label = strdup(json_get_text(begin, "label", "recovered"));
	run->command_line = strdup(json_get_text(begin, "command", "an unknown command"));
	run->wall_s = (double)(run->end - run->start) / 1e9;
	run->interval_requested_ms = json_get_number(json_object_get(begin, "options"), "interval_ms", NAN);
	if (isnan(run->cpu_user_s)) {
		run->cpu_user_s = run->whole.cpu_user_s;
		run->cpu_system_s = run->whole.cpu_system_s;
	}
	if (!run->processes)
		run->processes = 1;
	note_machine_before(run, begin);
}

static void build_timeline(const struct rundir *dir, const volatile int *hurry, struct run *run)
{
	struct error err;
	int problem;

	if (hurry && *hurry) {
		warnings_add(&run->warnings,
			     "timeline.h5 was left out: assay was interrupted (`assay recover --force` makes it).");
		return;
	}
	problem = timeline_file_build(dir->monitor_seg, dir->timeline_h5, run->start, run->wall_start_ns, hurry, &err);
	if (problem)
		warnings_add(&run->warnings, "timeline.h5 is %s: %s.", problem > 0 ? "incomplete" : "missing",
			     err.text);
}

static void read_monitor_parts(const struct rundir *dir, struct segment_reader *reader, enum finish_mode mode,
			       struct monitor_facts *facts, struct run *run)
{
	struct segment_facts segment;
	struct error damage;

	segment_reader_facts(reader, &segment);
	if (read_monitor(reader, facts, run, mode, &damage) < 0)
		warnings_add(&run->warnings, "%s.", damage.text);
	if (segment.dropped)
		warnings_add(&run->warnings, "%s: %" PRIu64 " records were dropped (%s).", dir->monitor_seg,
			     segment.dropped, segment.stopped ? strerror(segment.stopped) : "no room");
	if (mode == FINISH_RECOVERED) {
		run->start = run->start ? run->start : segment.mono_ns;
		run->end = facts->last_t > run->end ? facts->last_t : run->end;
		run->end = run->end > run->start ? run->end : run->start;
	}
}

int finish_run(const struct rundir *dir, const json_t *begin, enum finish_mode mode, const volatile int *hurry,
	       struct run *run, struct error *err)
{
	CLEANUP(segment_reader_cleanup) struct segment_reader *reader = NULL;
	struct monitor_facts facts = {0};
	struct error why;
	int failed = 0;

	marks_init(&facts.marks);
	take_exits(dir, mode, run);
	if (segment_reader_open(dir->monitor_seg, SEGMENT_KIND_MONITOR, &reader, &why) == 0)
		read_monitor_parts(dir, reader, mode, &facts, run);
	else if (mode == FINISH_RECOVERED && !run->start)
		failed = error_set(err, "%s", why.text);
	else
		warnings_add(&run->warnings, "There are no counters: %s.", why.text);
	if (mode == FINISH_RECOVERED) {
		run->wall_start_ns = run->start + (int64_t)json_get_number(begin, "wall_offset_ns", 0);
		failed = failed || read_late_marks(dir, &facts, run, err) < 0;
	}
	if (!failed && read_engine(dir, begin, hurry, run, &why) < 0)
		warnings_add(&run->warnings, "The output was not parsed: %s.", why.text);
	failed = failed || find_phases(run, &facts, err) < 0;
	marks_release(&facts.marks);
	if (failed)
		return -1;
	if (reader) {
		segment_reader_rewind(reader);
		if (figures_read(reader, run, &why) < 0)
			warnings_add(&run->warnings, "The figures of the phases are incomplete: %s.", why.text);
		build_timeline(dir, hurry, run);
	}
	if (run->whole.oom_kills > 0.5)
		warnings_add(&run->warnings,
			     "The kernel killed %.0f process%s of this control group for want of memory.",
			     run->whole.oom_kills, run->whole.oom_kills < 1.5 ? "" : "es");
	if (mode == FINISH_RECOVERED)
		fill_recovered(run, begin);
	refine_memory(run);
	return 0;
}

int finish_recorder_pid(const struct rundir *dir, const json_t *begin)
{
	CLEANUP(segment_reader_cleanup) struct segment_reader *reader = NULL;
	const char *boot_id = json_get_text(json_object_get(begin, "machine"), "boot_id", "");
	struct segment_facts facts;
	struct machine machine;

	if (segment_reader_open(dir->monitor_seg, SEGMENT_KIND_MONITOR, &reader, NULL) < 0)
		return 0;
	segment_reader_facts(reader, &facts);
	machine_read(&machine);
	if (facts.closed || facts.pid <= 0 || strcmp(boot_id, machine.boot_id) != 0)
		return 0;
	return kill(facts.pid, 0) == 0 || errno == EPERM ? facts.pid : 0;
}
