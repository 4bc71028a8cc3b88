/* Replays a recorded log through splitters and parsers, as it was or in another dress, and prints what came of it.
 *
 * A log is a text file: `$ COMMAND`, `end<TAB>SECONDS`, then one line of output a line: SECONDS<TAB>o|e|t<TAB>TEXT, in
 * which \r, \t, \b and \e stand for those characters and \c at the end for "no newline". Include it after cmocka.h. */
#ifndef ASSAY_TESTS_ENGINE_REPLAY_H
#define ASSAY_TESTS_ENGINE_REPLAY_H

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "engine/engine.h"
#include "engine/lines.h"

#define REPLAY_START INT64_C(1000000000000) /* ns: a run does not begin at 0 */

/* The folder of the logs: $ASSAY_TEST_DATA, which meson sets. Ends the program where it is not set. */
static inline const char *replay_data(void)
{
	const char *folder = getenv("ASSAY_TEST_DATA");

	if (!folder || !*folder) {
		fputs("Please set ASSAY_TEST_DATA to the source tree's tests/data, as `meson test` does.\n", stderr);
		exit(2);
	}
	return folder;
}

/* How the log is dressed up before it is split. */
struct dress {
	const char *before, *after; /* of each line; NULL: nothing */
	const char *newline;
	size_t chunk;    /* bytes fed at once */
	bool merged;     /* all on one stream, as on a terminal */
	bool no_command; /* the parsers do not learn the command */
	const char *engine;
};

static const struct dress plain = {NULL, NULL, "\n", 4096, false, false, "auto"};

struct replay {
	const struct dress *dress;
	struct engine_set *set;
	struct line_splitter *splitters[3];
	char **argv;
	int64_t end;
};

static inline void replay_each(void *context, const struct log_line *line)
{
	engine_set_line(context, line);
}

/* "\\r" and so on; returns whether the line has no newline. */
static inline bool replay_unescape(char *text)
{
	static const char from[] = "rtbe", to[] = "\r\t\b\033";
	char *out = text;
	bool open = false;

	for (; *text; text++) {
		const char *escape = *text == '\\' && text[1] ? strchr(from, text[1]) : NULL;

		if (*text == '\\' && text[1] == 'c' && !text[2]) {
			open = true;
			text++;
		} else {
			*out++ = escape ? to[escape - from] : *text;
			text += escape != NULL;
		}
	}
	*out = '\0';
	return open;
}

static inline void replay_line(struct replay *r, char *row)
{
	char *stream = strchr(row, '\t'), *text;
	struct buf bytes;
	int which;
	int64_t t = REPLAY_START + (int64_t)(strtod(row, NULL) * 1e9);
	bool open;

	assert_non_null(stream);
	text = stream + 2 + (stream[2] == '\t');
	which = r->dress->merged ? 2 : stream[1] == 'o' ? 0 : stream[1] == 'e' ? 1 : 2;
	open = replay_unescape(text);
	buf_init(&bytes);
	buf_printf(&bytes, "%s%s%s%s", r->dress->before ? r->dress->before : "", text,
		   r->dress->after ? r->dress->after : "", open ? "" : r->dress->newline);
	for (size_t at = 0; at < bytes.length; at += r->dress->chunk)
		line_splitter_feed(r->splitters[which], t, bytes.text + at,
				   bytes.length - at < r->dress->chunk ? bytes.length - at : r->dress->chunk);
	buf_release(&bytes);
}

static inline char **replay_words(char *command)
{
	char **argv = calloc(strlen(command) + 2, sizeof *argv);
	size_t count = 0;

	for (char *word = strtok(command, " "); word; word = strtok(NULL, " "))
		argv[count++] = word;
	return argv;
}

/* Fills *result (not initialised) with what the parsers make of the log. The text is changed. */
static inline void replay_text(char *text, const struct dress *dress, struct engine_result *result)
{
	struct error err;
	struct replay r = {.dress = dress};
	struct engine_context context = {.start = REPLAY_START};
	char *lines = NULL, *row = strtok_r(text, "\n", &lines);

	r.argv = replay_words(row + 2);
	row = strtok_r(NULL, "\n", &lines);
	context.argv = dress->no_command ? NULL : r.argv;
	context.end = REPLAY_START + (int64_t)(strtod(row + 4, NULL) * 1e9);
	r.set = engine_set_new(dress->engine, &context);
	assert_non_null(r.set);
	for (int i = 0; i < 3; i++)
		assert_non_null(r.splitters[i] = line_splitter_new(i, replay_each, r.set));
	while ((row = strtok_r(NULL, "\n", &lines)))
		replay_line(&r, row);
	for (int i = 0; i < 3; i++)
		line_splitter_end(r.splitters[i]);
	engine_result_init(result);
	if (engine_set_finish(r.set, result, &err) < 0)
		fail_msg("%s", err.text);
	for (int i = 0; i < 3; i++)
		line_splitter_free(r.splitters[i]);
	engine_set_free(r.set);
	free(r.argv);
}

/* The same with the log NAME of the test data. */
static inline void replay(const char *name, const struct dress *dress, struct engine_result *result)
{
	char path[512];
	struct buf file;
	struct error err;

	snprintf(path, sizeof path, "%s/engine/%s.tsv", replay_data(), name);
	buf_init(&file);
	if (fs_read_file(path, 1 << 20, &file, &err) < 0)
		fail_msg("%s", err.text);
	replay_text(file.text, dress, result);
	buf_release(&file);
}

static inline double replay_seconds(int64_t t)
{
	return t ? (double)(t - REPLAY_START) / 1e9 : NAN;
}

/* The result as text, for comparison with an expected file. */
static inline void replay_print(const struct engine_result *r, struct buf *out)
{
	buf_printf(out, "engine %s\nbuild %s\n", r->known ? r->engine : "none", r->build);
	for (size_t i = 0; i < r->marks.count; i++)
		buf_printf(out, "mark %.6f %s %s\n", replay_seconds(r->marks.items[i].t),
			   phase_group_name(r->marks.items[i].group), r->marks.items[i].name);
	for (size_t i = 0; i < r->test_count; i++)
		buf_printf(out,
			   "test %s: model %s, prompt %" PRId64 ", gen %" PRId64 ", depth %" PRId64
			   ", %.6f +- %.6f tokens/s, %" PRId64 " repetitions\n",
			   r->tests[i].name, r->tests[i].model, r->tests[i].n_prompt, r->tests[i].n_gen,
			   r->tests[i].n_depth, r->tests[i].tokens_per_s, r->tests[i].deviation,
			   r->tests[i].repetitions);
	for (size_t i = 0; i < r->request_count; i++) {
		const struct engine_request *q = &r->requests[i];

		buf_printf(out,
			   "request %" PRId64 " slot %" PRId64 ": %.6f to %.6f, prompt %" PRId64 " (%" PRId64
			   " cached) %.2f ms %.2f/s, generated %" PRId64 " %.2f ms %.2f/s\n",
			   q->id, q->slot, replay_seconds(q->start), replay_seconds(q->end), q->prompt_tokens,
			   q->cached_tokens, q->prompt_ms, q->prompt_per_s, q->generated_tokens, q->generated_ms,
			   q->generated_per_s);
	}
	buf_printf(out, "prefill %.6f +- %.6f\ndecode %.6f +- %.6f\nsource %s\n", r->prefill_tokens_per_s,
		   r->prefill_deviation, r->decode_tokens_per_s, r->decode_deviation, r->rate_source);
	for (size_t i = 0; i < r->warnings.count; i++)
		buf_printf(out, "warning %s\n", r->warnings.texts[i]);
}

/* Fails unless the log gives what its expected file says. ASSAY_UPDATE_GOLDEN=1 rewrites that file. */
static inline void replay_expect(const char *name)
{
	const char *update = getenv("ASSAY_UPDATE_GOLDEN");
	struct engine_result r;
	struct buf got, wanted;
	struct error err;
	char path[512];

	buf_init(&got);
	buf_init(&wanted);
	replay(name, &plain, &r);
	replay_print(&r, &got);
	snprintf(path, sizeof path, "%s/engine/%s.expected", replay_data(), name);
	if (update && strcmp(update, "1") == 0 && fs_write_file(path, got.text, got.length, &err) < 0)
		fail_msg("%s", err.text);
	if (fs_read_file(path, 1 << 20, &wanted, &err) < 0)
		fail_msg("%s", err.text);
	if (strcmp(got.text, wanted.text) != 0)
		fail_msg("%s gave\n%s\ninstead of\n%s", name, got.text, wanted.text);
	engine_result_release(&r);
	buf_release(&got);
	buf_release(&wanted);
}

#endif
