/* llama.cpp's command-line tools (llama-cli, llama-completion, llama-perplexity) and programs that use the library and
 * let it print its timings.
 *
 * The timings come in one block at a generation's end: its begin is the tool's `generate:` line, or else counted back
 * from the block. Loader lines are the library's and so are in the logs of llama-bench and llama-server, too: where one
 * of those knows its log, this parser stands back. */
#include "engine/engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/marking.h"
#include "engine/text.h"
#include "engine/printed_time.h"

/* A block of timing lines, while it is being read. */
struct block {
	bool open;
	int64_t t; /* of its first line: when the generation had ended */
	double total_ms, sampling_ms;
	struct engine_request request;
};

struct cli {
	struct engine_context context;
	struct engine_result result;
	struct error error;
	bool failed;

	bool loading;      /* a mark of group load was made and nothing after it */
	bool tool;         /* one of llama.cpp's own tools, not another program with the library */
	bool warming_line; /* the warmup says so itself; `threadpool init` then means nothing */
	int64_t began;     /* when the generation under way began; 0: not seen */
	struct block block;
	struct rate_mean prefill, decode;

	bool chat;           /* the tool that prints `[ Prompt: ... ]` */
	size_t chat_prefix;  /* bytes that a log puts before each of its lines */
	bool answering;      /* its generation is under way */
	uint64_t chat_known; /* blocks with times in them, since the last such line */
	double chat_prefill, chat_decode;
	int64_t generations;
};

static void *cli_open(const struct engine_context *c)
{
	struct cli *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->context = *c;
	engine_result_init(&s->result);
	s->chat_prefill = s->chat_decode = NAN;
	return s;
}

static void cli_close(void *state)
{
	struct cli *s = state;

	engine_result_release(&s->result);
	free(s);
}

/* The chat tool's prompt is too short a line for a phrase. */
static bool cli_attentive(const void *state)
{
	return ((const struct cli *)state)->chat;
}

static void mark(struct cli *s, int64_t t, enum phase_group group, const char *name)
{
	if (marking_add(&s->result, &s->context, t, group, name, &s->error) < 0)
		s->failed = true;
}

static void add_request(struct cli *s, struct engine_request *request)
{
	request->id = s->generations++;
	if (engine_result_add_request(&s->result, request, &s->error) < 0)
		s->failed = true;
}

static double or_zero(double value)
{
	return isnan(value) ? 0 : value;
}

/* The phases of a generation that ended at the block. Where much more time went by than was counted (a conversation
 * waits for its user), or where nothing was counted, one phase of group other. */
static void mark_generation(struct cli *s, const struct block *b, int64_t begin)
{
	const struct engine_request *r = &b->request;
	double counted = or_zero(r->prompt_ms) + or_zero(r->generated_ms) + or_zero(b->sampling_ms);
	double lasted = (double)(b->t - begin) / (double)NS_PER_MS;

	if (counted <= 0 || lasted > 1.25 * counted + 100) {
		mark(s, begin, GROUP_OTHER, "prefill+decode");
		return;
	}
	if (!isnan(r->prompt_ms))
		mark(s, begin, GROUP_PREFILL, "prefill");
	if (!isnan(r->generated_ms))
		mark(s, begin + printed_time_ns(r->prompt_ms), GROUP_DECODE, "decode");
}

static void close_block(struct cli *s)
{
	struct block *b = &s->block;
	struct engine_request *r = &b->request;
	double counted = or_zero(r->prompt_ms) + or_zero(r->generated_ms) + or_zero(b->sampling_ms);
	int64_t begin = s->began;

	if (!b->open)
		return;
	b->open = false;
	if (!begin) {
		double lasted = b->total_ms > 0 && b->total_ms <= 1.25 * counted + 100 ? b->total_ms : counted;

		begin = b->t - printed_time_ns(lasted);
	}
	if (begin < marking_last(&s->result, &s->context))
		begin = marking_last(&s->result, &s->context);
	r->start = begin;
	r->end = b->t;
	if (r->prompt_tokens > 1) /* one token is a decode step, not the prefill's speed */
		rate_mean_add(&s->prefill, r->prompt_per_s, r->prompt_ms);
	rate_mean_add(&s->decode, r->generated_per_s, r->generated_ms);
	mark_generation(s, b, begin);
	if (s->tool && !s->chat)
		mark(s, b->t, GROUP_SHUTDOWN, "shutdown");
	else
		mark(s, b->t, GROUP_OTHER, "between generations");
	add_request(s, r);
	s->chat_known++;
	s->began = 0;
	s->loading = false;
}

static bool timing_line(struct cli *s, const struct log_line *line)
{
	struct printed_time printed = printed_time_read(line);
	struct block *b = &s->block;
	bool again;

	if (printed.kind == PRINTED_NONE ||
	    !(line_has(line, "llama_perf_") || line_has(line, "common_perf_print:") ||
	      line_has(line, "llama_print_timings:") || (s->chat && line_has(line, "print_timing: id"))))
		return false;
	again = printed.kind == PRINTED_PROMPT && (b->request.prompt_tokens >= 0 || !isnan(b->total_ms));
	if (b->open && again)
		close_block(s);
	if (!b->open)
		*b = (struct block){
			.open = true, .t = line->t, .total_ms = NAN, .sampling_ms = NAN, .request = request_unknown};
	printed_time_store(&printed, &b->request);
	if (printed.kind == PRINTED_SAMPLING)
		b->sampling_ms = printed.ms;
	if (printed.kind == PRINTED_TOTAL) {
		b->total_ms = printed.ms;
		close_block(s);
	}
	s->result.known++;
	return true;
}

/* `[ Prompt: 412.3 t/s | Generation: 101.3 t/s ]`: rates without times. */
static bool chat_rates(struct cli *s, const struct log_line *line)
{
	struct engine_request request = request_unknown;
	const char *at = line_after(line, "[ Prompt:");

	if (!at || !text_number(&at, &request.prompt_per_s) || !text_skip(&at, "t/s") || !text_skip(&at, "|") ||
	    !text_skip(&at, "Generation:") || !text_number(&at, &request.generated_per_s) || !text_skip(&at, "t/s"))
		return false;
	s->result.known++;
	s->chat = true;
	if (s->chat_known == 0) {
		request.start = s->answering ? marking_last(&s->result, &s->context) : 0;
		request.end = line->t;
		if (!(request.prompt_per_s > 0))
			request.prompt_per_s = NAN;
		if (!(request.generated_per_s > 0))
			request.generated_per_s = NAN;
		add_request(s, &request);
		if (!isnan(request.prompt_per_s))
			s->chat_prefill = request.prompt_per_s;
		if (!isnan(request.generated_per_s))
			s->chat_decode = request.generated_per_s;
	}
	s->chat_known = 0;
	s->answering = false;
	mark(s, line->t, GROUP_OTHER, "between generations");
	return true;
}

/* The banner's line on how to leave; the model is loaded then. */
static bool chat_banner(struct cli *s, const struct log_line *line)
{
	const char *at = line_after(line, "  /exit or Ctrl+C ");

	if (!at || !line_has(line, "stop or exit"))
		return false;
	s->chat = s->tool = true;
	s->chat_prefix = (size_t)(at - line->text) - strlen("  /exit or Ctrl+C ");
	s->result.known++;
	if (s->result.marks.count == 0)
		mark(s, s->context.start, GROUP_LOAD, "load+warmup");
	mark(s, line->t, GROUP_OTHER, "between generations");
	return true;
}

/* Other lines of the chat tool: `> ` begins what the user says, which is answered next. */
static void cli_rest(void *state, const struct log_line *line)
{
	struct cli *s = state;
	const char *text = line->length > s->chat_prefix ? line->text + s->chat_prefix : "";

	if (s->answering)
		return;
	if (strncmp(text, "> ", 2) == 0 && text[2]) {
		s->answering = true;
		mark(s, line->t, GROUP_OTHER, "prefill+decode");
	} else if (strcmp(text, "Exiting...") == 0) {
		mark(s, line->t, GROUP_SHUTDOWN, "shutdown");
	}
}

/* The server inside the chat tool, when it is verbose. */
static bool inner_server_line(struct cli *s, const struct log_line *line)
{
	if (!s->chat || !line_has(line, "| processing task"))
		return false;
	s->began = line->t;
	return true;
}

static void note_build(struct cli *s, const struct log_line *line)
{
	static const char *const before[] = {"main: build = ", "print_info: build ", "build      : ", "build: "};
	static const char *const after[] = {" with ", NULL};

	for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
		const char *at = line_after(line, before[i]);

		if (at && strpbrk(at, "(-")) {
			text_copy(s->result.build, sizeof s->result.build, at, after);
			return;
		}
	}
}

/* Loading and warmup. The tool's own first words come before the library's, which other programs print, too. */
static bool load_line(struct cli *s, const struct log_line *line)
{
	static const char *const own[] = {"llama_completion: llama backend init", "main: llama backend init",
					  "main: load the model and apply lora", "main: build = "};
	static const char *const library[] = {"load the model and apply lora",
					      "llama_model_loader: loaded meta data with",
					      "llm_load_tensors: ",
					      "load_tensors: loading model tensors",
					      "load_model: loading model",
					      "llama_model_load_internal: "};

	for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
		if (line_has(line, own[i])) {
			s->tool = true;
			s->result.known++;
		}
	}
	for (size_t i = 0; i < sizeof library / sizeof *library; i++) {
		if (!line_has(line, library[i]))
			continue;
		s->result.known += i == 1;
		if (!s->loading && !s->began)
			mark(s, line->t, GROUP_LOAD, "load");
		s->loading = true;
		return true;
	}
	return false;
}

static bool warmup_line(struct cli *s, const struct log_line *line)
{
	if (!s->loading)
		return false;
	if (line_has(line, "warming up the model with an empty run")) {
		s->warming_line = true;
		mark(s, line->t, GROUP_WARMUP, "warmup");
	} else if (line_has(line, "llama threadpool init")) {
		if (!s->warming_line)
			mark(s, line->t, GROUP_WARMUP, "warmup");
	} else if (line_has(line, "system_info: n_threads")) {
		mark(s, line->t, GROUP_OTHER, "setup");
		s->loading = s->warming_line = false;
	} else {
		return false;
	}
	return true;
}

static void cli_line(void *state, const struct log_line *line)
{
	struct cli *s = state;

	if (timing_line(s, line) || chat_banner(s, line) || chat_rates(s, line) || inner_server_line(s, line) ||
	    warmup_line(s, line))
		return;
	note_build(s, line);
	if (line_has(line, "generate: n_ctx = ")) {
		close_block(s);
		s->began = line->t;
		s->loading = false;
		s->tool = true;
		s->result.known++;
		mark(s, line->t, GROUP_OTHER, "prefill+decode"); /* until the timings say more */
		return;
	}
	load_line(s, line);
}

static void take_rates(struct cli *s)
{
	struct engine_result *r = &s->result;
	uint64_t count = s->prefill.count > s->decode.count ? s->prefill.count : s->decode.count;

	r->prefill_tokens_per_s = rate_mean_value(&s->prefill);
	r->decode_tokens_per_s = rate_mean_value(&s->decode);
	if (count > 0) {
		snprintf(r->rate_source, sizeof r->rate_source, "printed timings of %llu generation%s%s",
			 (unsigned long long)count, count == 1 ? "" : "s",
			 count == 1 ? "" : ", weighted by their time");
	} else if (!isnan(s->chat_prefill) || !isnan(s->chat_decode)) {
		r->prefill_tokens_per_s = s->chat_prefill;
		r->decode_tokens_per_s = s->chat_decode;
		snprintf(r->rate_source, sizeof r->rate_source, "printed by llama-cli%s",
			 s->generations > 1 ? " for the last of several generations" : "");
	}
}

static int cli_finish(void *state, struct engine_result *result, struct error *err)
{
	struct cli *s = state;

	close_block(s);
	if (s->failed)
		return error_set(err, "%s", s->error.text);
	take_rates(s);
	snprintf(s->result.engine, sizeof s->result.engine, "llama-cli");
	*result = s->result;
	engine_result_init(&s->result);
	return 0;
}

static const char *const phrases[] = {
	"eval time =",
	"total time =",
	"sampling time =",
	"  sample time =",
	"load time =",
	"[ Prompt:",
	"/exit or Ctrl+C",
	"| processing task",
	"llama backend init",
	"load the model and apply lora",
	"main: build = ",
	"llama_model_loader: loaded",
	"llm_load_tensors: ",
	"load_tensors: loading",
	"load_model: loading model",
	"llama_model_load_internal: ",
	"warming up the model",
	"llama threadpool init",
	"system_info: n_threads",
	"generate: n_ctx = ",
	"build      : ",
	"print_info: build ",
	") with c", /* build: 4000 (abcdef0) with cc (Debian 12.2.0) 12.2.0 for x86_64-linux-gnu */
	") with g",
	") with G",
	") with A",
	NULL,
};

static const char *const yields_to[] = {"llama-bench", "llama-server", NULL};

const struct engine engine_llama_cli = {
	.name = "llama-cli",
	.summary = "llama.cpp's llama-cli, llama-completion, llama-perplexity and the library's own timing lines",
	.phrases = phrases,
	.attentive = cli_attentive,
	.rest = cli_rest,
	.yields_to = yields_to,
	.open = cli_open,
	.line = cli_line,
	.finish = cli_finish,
	.close = cli_close,
};
