/* llama-server, from its first versions to the present ones, by what the lines say and not by their layout.
 *
 * A request is followed by slot and task: launched, its timings, released. Which of its prompt came from the cache is
 * told by several lines, of which each version prints some; docs/engines.md states which requests then count. */
#include "engine/engine.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/marking.h"
#include "engine/server_requests.h"
#include "engine/text.h"
#include "engine/printed_time.h"

enum stage { STAGE_BEFORE, STAGE_LOADING, STAGE_WARMING, STAGE_READYING, STAGE_SERVING, STAGE_DOWN };

struct server {
	struct engine_context context;
	struct engine_result result;
	struct error error;
	bool failed;
	enum stage stage;
	bool listening;                 /* it said so, perhaps before its model was loaded */
	bool chat;                      /* the log is llama-cli's */
	int64_t block_slot, block_task; /* whose timing lines without a prefix follow; -1: nobody's */
	struct server_requests requests;
};

static void *server_open(const struct engine_context *c)
{
	struct server *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	if (server_requests_init(&s->requests, &s->result) < 0) {
		free(s);
		return NULL;
	}
	s->context = *c;
	engine_result_init(&s->result);
	s->block_slot = s->block_task = -1;
	return s;
}

static void server_close(void *state)
{
	struct server *s = state;

	engine_result_release(&s->result);
	server_requests_release(&s->requests);
	free(s);
}

static void mark(struct server *s, int64_t t, enum phase_group group, const char *name)
{
	if (marking_add(&s->result, &s->context, t, group, name, &s->error) < 0)
		s->failed = true;
}

static void ready(struct server *s, const struct log_line *line)
{
	if (s->stage == STAGE_SERVING)
		return;
	s->stage = STAGE_SERVING;
	mark(s, line->t, GROUP_SERVING, "serving");
}

/* Slot and task, in any of the ways they were written: "id  3 | task 0 |", "id_slot=3 id_task=0", "slot_id":3,
 * "task_id":0, "slot 3 is processing [task id: 0]", "slot 3 : ". */
static void read_ids(const struct log_line *line, int64_t *slot, int64_t *task)
{
	const char *at;

	*slot = *task = -1;
	if ((at = line_after(line, ": id ")) && text_integer(&at, slot)) {
		if (text_skip(&at, "|") && text_skip(&at, "task"))
			text_integer(&at, task);
		return;
	}
	*slot = line_field(line, "id_slot");
	*task = line_field(line, "id_task");
	if (*slot >= 0)
		return;
	*slot = line_field(line, "slot_id");
	*task = line_field(line, "task_id");
	if (*slot < 0 && (at = line_after(line, "slot ")))
		text_integer(&at, slot);
	if (*task < 0)
		*task = line_field(line, "task id");
}

static void launched(struct server *s, const struct log_line *line, int64_t slot, int64_t task)
{
	ready(s, line);
	server_requests_launched(&s->requests, line->t, slot, task);
}

static void released(struct server *s, const struct log_line *line, int64_t slot, int64_t task)
{
	int64_t tokens = line_field(line, "n_past");
	bool truncated = line_field(line, "truncated") > 0 || line_has(line, "truncated=true") ||
			 line_has(line, "\"truncated\":true");

	if (tokens < 0)
		tokens = line_field(line, "n_tokens");
	server_requests_released(&s->requests, line->t, slot, task, tokens, truncated);
}

static bool cache_line(struct server *s, const struct log_line *line, int64_t slot, int64_t task)
{
	const char *at;
	int64_t cached = -1;

	if ((at = line_after(line, "n_past was set to")) && text_integer(&at, &cached))
		server_requests_cached(&s->requests, slot, task, cached, true);
	else if ((at = line_after(line, "memory_seq_rm [")) || (at = line_after(line, "kv cache rm [")) ||
		 (at = line_after(line, "kv cache rm - [")))
		server_requests_cached(&s->requests, slot, task,
				       text_integer(&at, &cached) ? cached : line_field(line, "p0"), false);
	else if ((at = line_after(line, "in cache: ")) && text_integer(&at, &cached))
		server_requests_cached(&s->requests, slot, task, cached, false);
	else
		return false;
	return true;
}

/* "selected slot by LCP similarity, sim_best = 0.998 (> 0.100 thold), f_keep = 1.000" */
static bool selection_line(struct server *s, const struct log_line *line)
{
	const char *at = line_after(line, "selected slot by ");

	if (!at)
		return false;
	s->requests.similarity = NAN;
	if (((at = line_after(line, "sim_best =")) || (at = line_after(line, "similarity ="))) &&
	    !text_number(&at, &s->requests.similarity))
		s->requests.similarity = NAN;
	return true;
}

static bool timing_line(struct server *s, const struct log_line *line)
{
	struct printed_time printed = printed_time_read(line);
	int64_t slot = s->block_slot, task = s->block_task;

	if (printed.kind == PRINTED_NONE)
		return false;
	if (line_has(line, "print_timing")) {
		read_ids(line, &slot, &task);
		if (slot < 0 && !line_has(line, "print_timings: ")) /* the first versions named no slot */
			return false;
	} else if (slot < 0) {
		return false;
	}
	if (printed.kind == PRINTED_TOTAL)
		s->block_slot = s->block_task = -1;
	return server_requests_timing(&s->requests, line->t, slot, task, &printed);
}

/* "slot print_timing: id  0 | task 0 | " alone on its line: the block without prefixes follows. */
static bool block_begins(struct server *s, const struct log_line *line)
{
	const char *at = line_after(line, "print_timing: id ");

	if (!at || !(at = strrchr(at, '|')) || at[1 + strspn(at + 1, " ")] != '\0')
		return false;
	read_ids(line, &s->block_slot, &s->block_task);
	return true;
}

static bool request_line(struct server *s, const struct log_line *line)
{
	int64_t slot, task;

	if (timing_line(s, line) || block_begins(s, line))
		return true;
	if (selection_line(s, line))
		return true;
	read_ids(line, &slot, &task);
	if (slot < 0)
		return false;
	if (line_has(line, "| processing task") || line_has(line, "slot is processing task") ||
	    line_has(line, "is processing [task id"))
		launched(s, line, slot, task);
	else if (line_has(line, "stop processing: ") || line_has(line, "slot released") ||
		 line_has(line, " released ("))
		released(s, line, slot, task);
	else if (!cache_line(s, line, slot, task))
		return false;
	return true;
}

static void loading(struct server *s, const struct log_line *line)
{
	s->stage = STAGE_LOADING;
	mark(s, line->t, GROUP_LOAD, "load");
}

static bool load_stage(struct server *s, const struct log_line *line)
{
	bool before = s->stage == STAGE_BEFORE;

	if (line_has(line, "load_model: loading model")) {
		if (s->stage != STAGE_LOADING)
			loading(s, line);
	} else if (line_has(line, "main: loading model") || line_has(line, "llama_model_loader: loaded meta data") ||
		   line_has(line, "llm_load_tensors: ")) {
		if (before)
			loading(s, line);
	} else if (line_has(line, "warming up the model") || line_has(line, "llama threadpool init")) {
		if (s->stage == STAGE_LOADING) {
			s->stage = STAGE_WARMING;
			mark(s, line->t, GROUP_WARMUP, "warmup");
		}
	} else if (line_has(line, "initializing slots") || line_has(line, "initializing, n_slots")) {
		if (s->stage == STAGE_LOADING || s->stage == STAGE_WARMING) {
			s->stage = STAGE_READYING;
			mark(s, line->t, GROUP_LOAD, "init");
		}
	} else if (line_has(line, "model loaded")) {
		if (s->listening)
			ready(s, line);
	} else {
		return false;
	}
	return true;
}

static bool serving_stage(struct server *s, const struct log_line *line)
{
	if (line_has(line, "server is listening on ") || line_has(line, "llama_server: listening on http")) {
		ready(s, line);
	} else if (line_has(line, "HTTP server listening") || line_has(line, "llama server listening at ")) {
		s->listening = true;
		if (s->stage != STAGE_BEFORE) /* early versions listened first and loaded then */
			ready(s, line);
	} else if (line_has(line, "all slots are idle")) {
		if (s->stage != STAGE_DOWN)
			ready(s, line);
	} else if (line_has(line, "cleaning up before exit")) {
		if (s->stage == STAGE_DOWN)
			return true;
		s->stage = STAGE_DOWN;
		mark(s, line->t, GROUP_SHUTDOWN, "shutdown");
	} else {
		return false;
	}
	return true;
}

/* Other programs listen, have slots and clean up before they exit, too: only lines of one of the server's own forms
 * speak for it. */
static bool telling(const struct log_line *line)
{
	static const char *const forms[] = {"srv  ",
					    "| task ",
					    "[task id",
					    "tid=",
					    "\"tid\":",
					    "\"function\":",
					    "print_timings: ",
					    "main: server is listening on ",
					    "llama server listening at "};

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if (line_has(line, forms[i]))
			return true;
	return false;
}

/* Returns whether the line is one that no other program prints. */
static bool note_build(struct server *s, const struct log_line *line)
{
	static const char *const before[] = {"print_info: build ", "build: "};
	static const char *const after[] = {" with ", NULL};
	int64_t number = line_field(line, "build");

	for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
		const char *at = line_after(line, before[i]);

		if (at && strchr(at, '('))
			text_copy(s->result.build, sizeof s->result.build, at, after);
	}
	if (!line_has(line, "build info") || number < 0 || !telling(line))
		return false;
	snprintf(s->result.build, sizeof s->result.build, "%" PRId64, number);
	return true;
}

static void server_line(void *state, const struct log_line *line)
{
	struct server *s = state;

	s->chat |= line_has(line, "[ Prompt:") || line_has(line, "/exit or Ctrl+C");
	if (request_line(s, line) || serving_stage(s, line) || load_stage(s, line))
		s->result.known += telling(line) || s->block_slot >= 0;
	else
		s->result.known += note_build(s, line);
}

static void take_rates(struct server *s)
{
	const struct server_requests *q = &s->requests;
	struct engine_result *r = &s->result;
	uint64_t count = q->prefill.count > q->decode.count ? q->prefill.count : q->decode.count;
	size_t used;

	r->prefill_tokens_per_s = rate_mean_value(&q->prefill);
	r->decode_tokens_per_s = rate_mean_value(&q->decode);
	if (count == 0)
		return;
	used = (size_t)snprintf(r->rate_source, sizeof r->rate_source, "printed by %" PRIu64 " request%s", count,
				count == 1 ? "" : "s, weighted by time");
	if (q->cached > 0 && used < sizeof r->rate_source)
		snprintf(r->rate_source + used, sizeof r->rate_source - used, "; %" PRIu64 " cached prompt%s left out",
			 q->cached, q->cached == 1 ? "" : "s");
}

static int server_finish(void *state, struct engine_result *result, struct error *err)
{
	struct server *s = state;

	server_requests_end(&s->requests);
	if (s->failed)
		return error_set(err, "%s", s->error.text);
	if (s->requests.failed)
		return error_set(err, "out of memory for the requests of llama-server");
	take_rates(s);
	if (s->chat) /* llama-cli holds a whole server and prints its lines when asked to be verbose */
		s->result.known = 0;
	snprintf(s->result.engine, sizeof s->result.engine, "llama-server");
	*result = s->result;
	engine_result_init(&s->result);
	return 0;
}

static const char *const phrases[] = {
	"print_timing",
	"eval time =",
	"total time =",
	"eval time     =",
	"processing task",
	"is processing [task id",
	"stop processing: ",
	"slot released",
	" released (",
	"n_past was set to",
	"memory_seq_rm [",
	"kv cache rm ",
	"in cache: ",
	"selected slot by ",
	"load_model: ",
	"main: loading model",
	"llama_model_loader: loaded",
	"llm_load_tensors: ",
	"warming up the model",
	"llama threadpool init",
	"initializing slots",
	"initializing, n_slots",
	"model loaded",
	"server is listening on ",
	"llama_server: listening",
	"server listening",
	"all slots are idle",
	"cleaning up before exit",
	"print_info: build ",
	"build info",
	") with c",
	") with g",
	") with G",
	") with A",
	"[ Prompt:",
	"/exit or Ctrl+C",
	NULL,
};

const struct engine engine_llama_server = {
	.name = "llama-server",
	.summary = "llama.cpp's server: start, warmup, requests, shutdown; wordings of 2023 to 2026",
	.phrases = phrases,
	.open = server_open,
	.line = server_line,
	.finish = server_finish,
	.close = server_close,
};
