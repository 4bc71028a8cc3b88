/* vLLM's server and its offline runs.
 *
 * It prints averages over intervals or over a whole batch, in which prefill and decode are mixed: they are named in a
 * warning or kept as tests, but are never the headline. Lines may carry a prefix such as `(EngineCore_DP0 pid=79)`; the
 * web server's lines (`Application startup complete.`) are those of any Python program and count only beside vLLM's
 * own. */
#include "engine/engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/marking.h"
#include "engine/text.h"

enum stage { STAGE_BEFORE, STAGE_LOADING, STAGE_WARMING, STAGE_WARM, STAGE_SERVING, STAGE_GENERATING, STAGE_DOWN };

struct vllm {
	struct engine_context context;
	struct engine_result result;
	struct error error;
	bool failed;
	enum stage stage;
	uint64_t intervals;
	double prompt_most, generation_most; /* of the interval averages */
	double batch_input, batch_output;    /* of the last progress line of an offline run */
	double total, output;                /* of `Throughput:` */
};

static void *vllm_open(const struct engine_context *c)
{
	struct vllm *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->context = *c;
	engine_result_init(&s->result);
	s->batch_input = s->batch_output = s->total = s->output = NAN;
	return s;
}

static void vllm_close(void *state)
{
	struct vllm *s = state;

	engine_result_release(&s->result);
	free(s);
}

static void enter(struct vllm *s, int64_t t, enum stage stage, enum phase_group group, const char *name)
{
	s->stage = stage;
	if (marking_add(&s->result, &s->context, t, group, name, &s->error) < 0)
		s->failed = true;
}

static void note_version(struct vllm *s, const struct log_line *line)
{
	static const char *const before[] = {"vLLM API server version ", "LLM engine ("};
	static const char *const after[] = {")", " ", NULL};

	for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
		const char *at = line_after(line, before[i]);

		if (at)
			text_copy(s->result.build, sizeof s->result.build, at, after);
	}
}

/* A worker's line that ends its load. With several workers the last one's counts: the load is over when all have it. */
static bool weights_loaded(const struct log_line *line)
{
	const char *at;
	double size;

	if (((at = line_after(line, "Model loading took")) || (at = line_after(line, "Loading model weights took")) ||
	     (at = line_after(line, "Loading weights took"))) &&
	    text_number(&at, &size))
		return true;
	return false;
}

static void loading(struct vllm *s, int64_t t)
{
	if (s->stage == STAGE_BEFORE || s->stage == STAGE_DOWN)
		enter(s, t, STAGE_LOADING, GROUP_LOAD, "load");
}

static void warming(struct vllm *s, int64_t t)
{
	loading(s, s->context.start);
	if (s->stage == STAGE_WARMING && s->result.marks.count > 1) /* a slower worker moves it on */
		s->result.marks.count--;
	if (s->stage == STAGE_LOADING || s->stage == STAGE_WARMING)
		enter(s, t, STAGE_WARMING, GROUP_WARMUP, "warmup");
}

/* Words that other programs could say, too, unless the line has vLLM's form:
 * `INFO 08-05 09:08:46 [loader.py:458] Loading weights took 1.60 seconds`. */
static bool own_form(const struct log_line *line)
{
	return line_has(line, "INFO ") && (line_has(line, ".py:") || line_has(line, " pid="));
}

/* Returns whether the line tells that this is vLLM's log. */
static bool start_line(struct vllm *s, const struct log_line *line)
{
	if (line_has(line, "vLLM API server version ")) {
		note_version(s, line);
	} else if (line_has(line, "LLM engine (v") && line_has(line, "Initializing a")) {
		note_version(s, line);
		loading(s, line->t);
	} else if (line_has(line, "Starting to load model ")) {
		loading(s, line->t);
		return own_form(line);
	} else if (weights_loaded(line)) {
		warming(s, line->t);
		return own_form(line);
	} else if (line_has(line, "init engine (profile, create kv cache")) {
		if (s->stage == STAGE_WARMING)
			enter(s, line->t, STAGE_WARM, GROUP_OTHER, "setup");
	} else {
		return line_has(line, "Graph capturing finished in") || line_has(line, "GPU KV cache size: ") ||
		       line_has(line, "# GPU blocks: ") || line_has(line, "Starting vLLM ");
	}
	return true;
}

/* "Engine 000: Avg prompt throughput: 16.9 tokens/s, Avg generation throughput: 7.6 tokens/s, Running: ..." */
static bool interval_line(struct vllm *s, const struct log_line *line)
{
	const char *prompt = line_after(line, "Avg prompt throughput: "), *generation;
	double prompt_rate, generation_rate;

	if (!prompt || !(generation = line_after(line, "Avg generation throughput: ")) ||
	    !text_number(&prompt, &prompt_rate) || !text_number(&generation, &generation_rate))
		return false;
	if (s->stage != STAGE_SERVING && s->stage != STAGE_GENERATING)
		enter(s, line->t, STAGE_SERVING, GROUP_SERVING, "serving");
	s->intervals++;
	s->prompt_most = fmax(s->prompt_most, prompt_rate);
	s->generation_most = fmax(s->generation_most, generation_rate);
	return true;
}

/* "Processed prompts: 100%|███| 4/4 [00:00<00:00, 8.46it/s, est. speed input: 46.55 toks/s, output: 135.41 toks/s]" */
static bool batch_line(struct vllm *s, const struct log_line *line)
{
	const char *input = line_after(line, "est. speed input: "), *output;

	if (!line_has(line, "Processed prompts: ") || !input)
		return false;
	if (s->stage != STAGE_GENERATING)
		enter(s, line->t, STAGE_GENERATING, GROUP_OTHER, "prefill+decode");
	if (text_number(&input, &s->batch_input) && (output = strstr(input, "output: ")) != NULL) {
		output += strlen("output: ");
		text_number(&output, &s->batch_output);
	}
	if (line_has(line, "100%|"))
		enter(s, line->t, STAGE_WARM, GROUP_OTHER, "between batches");
	return true;
}

/* "Throughput: 5.21 requests/s, 2666.40 total tokens/s, 1333.20 output tokens/s" */
static bool throughput_line(struct vllm *s, const struct log_line *line)
{
	const char *at = line_after(line, "Throughput: ");
	double requests, total, output;

	if (!at || !text_number(&at, &requests) || !text_skip(&at, "requests/s,") || !text_number(&at, &total) ||
	    !text_skip(&at, "total tokens/s"))
		return false;
	s->total = total;
	if (text_skip(&at, ",") && text_number(&at, &output) && text_skip(&at, "output tokens/s"))
		s->output = output;
	return true;
}

/* Lines that tell something only in a log that is vLLM's. */
static void web_line(struct vllm *s, const struct log_line *line)
{
	if (line_has(line, "Application startup complete")) {
		if (s->stage != STAGE_SERVING)
			enter(s, line->t, STAGE_SERVING, GROUP_SERVING, "serving");
	} else if (line_has(line, "hutting down FastAPI HTTP server") || line_has(line, "INFO:     Shutting down") ||
		   line_has(line, "Waiting for application shutdown")) {
		if (s->stage != STAGE_DOWN)
			enter(s, line->t, STAGE_DOWN, GROUP_SHUTDOWN, "shutdown");
	}
}

static void vllm_line(void *state, const struct log_line *line)
{
	struct vllm *s = state;

	if (start_line(s, line) || interval_line(s, line) || batch_line(s, line) || throughput_line(s, line))
		s->result.known++;
	else
		web_line(s, line);
}

/* A rate over prefill and decode together, kept beside the headline. */
static int add_mixed(struct engine_result *r, const char *name, double rate, struct error *err)
{
	struct engine_test test = {
		.n_prompt = -1, .n_gen = -1, .n_depth = -1, .tokens_per_s = rate, .deviation = NAN, .repetitions = -1};

	if (!(rate > 0))
		return 0;
	snprintf(test.name, sizeof test.name, "%s", name);
	return engine_result_add_test(r, &test, err);
}

static int vllm_finish(void *state, struct engine_result *result, struct error *err)
{
	struct vllm *s = state;
	struct engine_result *r = &s->result;

	if (s->failed)
		return error_set(err, "%s", s->error.text);
	if (add_mixed(r, "whole batch, input", s->batch_input, err) < 0 ||
	    add_mixed(r, "whole batch, output", s->batch_output, err) < 0 ||
	    add_mixed(r, "whole run, input and output", s->total, err) < 0 ||
	    add_mixed(r, "whole run, output", s->output, err) < 0)
		return -1;
	if (s->intervals > 0)
		warnings_add(&r->warnings,
			     "vLLM printed only averages over intervals (prompt at most %.1f tokens/s, generation at "
			     "most %.1f "
			     "tokens/s): they are indicative and not taken as the speed of prefill and decode.",
			     s->prompt_most, s->generation_most);
	if (s->intervals > 0 || r->test_count > 0)
		snprintf(r->rate_source, sizeof r->rate_source,
			 "none: vLLM prints averages of prefill and decode together");
	snprintf(r->engine, sizeof r->engine, "vllm");
	*result = *r;
	engine_result_init(r);
	return 0;
}

static const char *const phrases[] = {
	"vLLM API server version ",
	"LLM engine (v",
	"Starting to load model ",
	"Model loading took",
	"Loading model weights took",
	"Loading weights took",
	"Graph capturing finished in",
	"init engine (profile",
	"GPU KV cache size: ",
	"# GPU blocks: ",
	"Starting vLLM ",
	"Avg prompt throughput: ",
	"Processed prompts: ",
	"Throughput: ",
	"Application startup complete",
	"hutting down FastAPI HTTP server",
	"Shutting down",
	"Waiting for application shutdown",
	NULL,
};

const struct engine engine_vllm = {
	.name = "vllm",
	.summary = "vLLM's server and offline runs: load, warmup, serving, shutdown; its rates are averages only",
	.phrases = phrases,
	.open = vllm_open,
	.line = vllm_line,
	.finish = vllm_finish,
	.close = vllm_close,
};
