#include "record/sampling.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "record/sampling_recorder.h"

/* One row per recorder; see sampling_recorder.h. */
static const struct sampling_recorder *const recorders[] = {
	&preload_recorder,
	&perf_recorder,
};

struct sampling {
	struct sampling_options options;
	struct sampling_context context;
	const struct sampling_recorder *recorder;
	void *state;
};

static const struct sampling_recorder *find_recorder(const char *name, struct error *err)
{
	for (size_t i = 0; i < sizeof recorders / sizeof *recorders; i++)
		if (strcmp(recorders[i]->name, name) == 0)
			return recorders[i];
	error_set(err, "there is no sampler '%s'", name);
	return NULL;
}

int sampling_new(const struct sampling_options *options, struct warnings *warnings, struct sampling **ret,
		 struct error *err)
{
	const struct sampling_recorder *recorder = find_recorder(options->recorder, err);
	struct sampling *s;

	if (!recorder)
		return -1;
	s = calloc(1, sizeof *s);
	if (!s)
		return error_set(err, "out of memory for the sampler");
	s->options = *options;
	s->context = (struct sampling_context){.options = &s->options, .warnings = warnings};
	if (samples_writer_new(options->segment_path, recorder->wire, options->hz, clock_mono_ns(), &s->context.writer,
			       err) < 0 ||
	    module_files_new(s->context.writer, warnings, &s->context.files, err) < 0 ||
	    recorder->open(&s->context, &s->state, err) < 0) {
		sampling_free(s);
		return -1;
	}
	s->recorder = recorder;
	*ret = s;
	return 0;
}

void sampling_free(struct sampling *s)
{
	if (!s)
		return;
	if (s->recorder)
		s->recorder->close(s->state);
	samples_writer_free(s->context.writer);
	module_files_free(s->context.files);
	free(s);
}

const char *const *sampling_environment(struct sampling *s, const char *const *env)
{
	static const char *const none[] = {NULL};

	return s->recorder->environment ? s->recorder->environment(s->state, env) : none;
}

int sampling_begin(struct sampling *s, pid_t command, struct error *err)
{
	return s->recorder->begin ? s->recorder->begin(s->state, command, err) : 0;
}

void sampling_poll(struct sampling *s, const struct process_table *table, int64_t now)
{
	s->recorder->poll(s->state, table, now);
	samples_writer_flush(s->context.writer);
}

void sampling_reaped(struct sampling *s, const struct wire_exit *e, int64_t now)
{
	if (s->recorder->reaped)
		s->recorder->reaped(s->state, e, now);
}

void sampling_forgotten(struct sampling *s, const struct process *p)
{
	if (s->recorder->forgotten)
		s->recorder->forgotten(s->state, p);
}

void sampling_end(struct sampling *s, const struct process_table *table, int64_t now)
{
	uint64_t dropped;
	int code;

	s->recorder->end(s->state, table, now);
	dropped = samples_writer_dropped(s->context.writer, &code);
	if (dropped)
		warnings_add(s->context.warnings,
			     "CPU samples were no longer kept from some moment on: %s.",
			     code ? strerror(code) : "there was no room");
	/* The file is whole from here on; what has its modules open stays. */
	samples_writer_free(s->context.writer);
	s->context.writer = NULL;
}

int sampling_module_fd(const struct sampling *s, uint32_t module)
{
	return module_files_fd(s->context.files, module);
}
