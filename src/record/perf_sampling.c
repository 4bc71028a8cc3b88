/* The recorder `--sampler perf`: samples that the kernel takes of the whole tree, read from outside. It needs the
 * kernel's permission and no help of the processes: static programs, and those without our environment, are sampled,
 * too. What it sees differs from the preload recorder in docs/sampler-perf.md. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "record/perf_account.h"
#include "record/perf_files.h"
#include "record/perf_processes.h"
#include "record/perf_registers.h"
#include "record/perf_rings.h"
#include "record/perf_unwind.h"
#include "record/sampling_recorder.h"
#include "wire/sampler.h"

#define KERNEL_FRAMES_MAX 256
#define ACCOUNT_EVERY_NS (100 * NS_PER_MS)

struct perf_sampling {
	const struct sampling_context *context;
	struct perf_rings *rings; /* NULL before begin */
	struct perf_unwinder *unwinder;
	struct perf_files *files;
	struct perf_processes *processes;
	struct perf_account *account; /* NULL before begin */
	int64_t account_due;
	uint32_t kernel_module; /* PERF_NONE: not yet */
	uint64_t unnamed;       /* samples whose process the kernel did not tell */
	uint64_t frames[SAMPLER_FRAMES_MAX];
};

/* What `code_at` needs. */
struct place {
	struct perf_sampling *s;
	struct perf_process *process;
};

static void image_ended(void *context, const struct perf_process *p, int64_t t)
{
	struct perf_sampling *s = context;
	struct wire_image_end end = {
		.id = p->image,
		.t = t,
		.deliveries = p->deliveries + p->lost,
		.weight = p->weight + p->lost,
		.dropped = p->lost,
		.dropped_weight = p->lost,
		.cpu_ns = -1,
	};

	samples_writer_image_end(s->context->writer, &end, "");
}

static void perf_close(void *state)
{
	struct perf_sampling *s = state;

	if (!s)
		return;
	perf_processes_free(s->processes, clock_mono_ns());
	perf_files_free(s->files);
	perf_unwinder_free(s->unwinder);
	perf_account_free(s->account);
	perf_rings_close(s->rings);
	free(s);
}

static int perf_open(const struct sampling_context *context, void **ret_state, struct error *err)
{
	struct perf_sampling *s;

	if (perf_rings_allowed(context->options->hz, err) < 0)
		return -1;
	s = calloc(1, sizeof *s);
	if (!s)
		return error_set(err, "out of memory for the perf recorder");
	s->context = context;
	s->kernel_module = PERF_NONE;
	s->unwinder = perf_unwinder_new();
	s->files = s->unwinder ? perf_files_new(context->files, s->unwinder) : NULL;
	s->processes = s->files ? perf_processes_new(context->writer, s->files, image_ended, s) : NULL;
	if (!s->processes) {
		perf_close(s);
		return error_set(err, "out of memory for the perf recorder");
	}
	*ret_state = s;
	return 0;
}

static int perf_begin(void *state, pid_t command, struct error *err)
{
	struct perf_sampling *s = state;

	if (perf_rings_open(command, s->context->options->hz, &s->rings, err) < 0)
		return -1;
	s->account = perf_account_new((int64_t)perf_rings_nominal(s->rings), perf_rings_see_kernel(s->rings));
	if (!s->account)
		return error_set(err, "out of memory for the perf recorder");
	if (perf_rings_machine(s->rings))
		perf_processes_only(s->processes, command, clock_mono_ns());
	if (!perf_rings_see_kernel(s->rings))
		warnings_add(s->context->warnings,
			     "CPU time in the kernel is not in the profile: perf may only sample user code here "
			     "(kernel.perf_event_paranoid of 1 or less, or CAP_PERFMON, grants the rest).");
	return 0;
}

static bool code_at(void *context, uint64_t address, const struct perf_tables **ret_tables, uint64_t *ret_bias)
{
	struct place *at = context;
	const struct perf_code *code = perf_process_code(at->s->processes, at->process, address);

	if (!code)
		return false;
	*ret_bias = code->bias;
	*ret_tables = code->kind == PERF_CODE_FILE   ? perf_file_tables(at->s->files, code->file)
		   : code->kind == PERF_CODE_VDSO ? perf_files_vdso(at->s->files)
						  : NULL;
	return true;
}

/* A part of the kernel's call chain: that of its own code, or of the process's. Innermost first; the first is where it
 * was, the others are less 1, in the call. */
static size_t part_of_chain(const struct perf_sample *sample, uint64_t part, uint64_t *frames, size_t room)
{
	uint64_t now = PERF_CONTEXT_USER;
	size_t count = 0;

	for (size_t i = 0; i < sample->chain_count; i++) {
		uint64_t address = sample->chain[i];

		if (address >= PERF_CONTEXT_MAX) {
			now = address;
			continue;
		}
		if (now == part && count < room) {
			frames[count] = address - (count > 0 && address > 0);
			count++;
		}
	}
	return count;
}

/* The process's own frames, with what becomes of the sample's flags. */
static size_t user_frames(struct perf_sampling *s, struct perf_process *process, const struct perf_sample *sample,
			  uint32_t *flags)
{
	struct place at = {s, process};
	struct perf_stack stack = {.bytes = sample->stack, .size = sample->stack_size};
	enum perf_unwind_end end;
	size_t count;

	if (!PERF_CAN_UNWIND)
		return part_of_chain(sample, PERF_CONTEXT_USER, s->frames, SAMPLER_FRAMES_MAX);
	if (sample->registers_abi == PERF_SAMPLE_REGS_ABI_NONE)
		return 0;
	for (size_t i = 0; i < CFI_REGISTERS; i++)
		stack.registers[perf_register_order[i]] = sample->registers[i];
	if (sample->registers_abi != PERF_SAMPLE_REGS_ABI_64) {
		s->frames[0] = stack.registers[CFI_RIP];
		return 1;
	}
	count = perf_unwind(s->unwinder, &stack, code_at, &at, s->frames, SAMPLER_FRAMES_MAX, &end);
	if (end == PERF_UNWIND_COMPLETE)
		*flags |= WIRE_SAMPLE_COMPLETE;
	else if (end == PERF_UNWIND_CUT)
		*flags |= WIRE_SAMPLE_CUT;
	return count;
}

static uint32_t kernel_module(struct perf_sampling *s)
{
	if (s->kernel_module == PERF_NONE)
		s->kernel_module = samples_writer_module(
			s->context->writer, &(struct wire_module){.kind = WIRE_MODULE_KERNEL}, "[kernel]");
	return s->kernel_module;
}

/* The place in the call tree, from the outermost frame on. */
static uint32_t node_of(struct perf_sampling *s, struct perf_process *process, const struct perf_sample *sample,
			uint32_t *flags)
{
	uint64_t kernel[KERNEL_FRAMES_MAX];
	size_t count = user_frames(s, process, sample, flags);
	size_t kernel_count = part_of_chain(sample, PERF_CONTEXT_KERNEL, kernel, KERNEL_FRAMES_MAX);
	uint32_t node = 0;

	/* In the midst of an exec the registers are still those of the program that was. */
	if (kernel_count && count == 1 && !perf_process_code(s->processes, process, s->frames[0]))
		count = 0;
	while (count-- > 0) {
		const struct perf_code *code = perf_process_code(s->processes, process, s->frames[count]);
		uint64_t address = s->frames[count] - (code && code->kind == PERF_CODE_FILE ? code->bias : 0);

		node = samples_writer_node(s->context->writer, node,
					   perf_process_module(s->processes, process, code), address);
	}
	while (kernel_count-- > 0)
		node = samples_writer_node(s->context->writer, node, kernel_module(s), kernel[kernel_count]);
	return node;
}

/* Whether the sample is of the command's tree. Where records were lost, that of a fork may be among them. */
static bool concerns(struct perf_sampling *s, const struct perf_record *record, const struct process_table *table)
{
	if (!perf_rings_machine(s->rings) || perf_processes_count(s->processes, record->pid))
		return true;
	if (!perf_processes_lost(s->processes) || !process_find((struct process_table *)table, record->pid))
		return false;
	perf_processes_adopt(s->processes, record->pid, record->t);
	return true;
}

static void take_sample(struct perf_sampling *s, const struct perf_record *record)
{
	uint64_t nominal = perf_rings_nominal(s->rings), periods = (record->sample.period + nominal / 2) / nominal;
	struct wire_sample sample = {.t = record->t, .weight = periods > 1 ? (uint32_t)periods : 1};
	struct perf_thread *thread;

	thread = record->pid > 0 ? perf_processes_thread(s->processes, record->pid, record->tid, record->t) : NULL;
	if (!thread) {
		s->unnamed++;
		return;
	}
	sample.thread = thread->id;
	sample.node = node_of(s, thread->process, &record->sample, &sample.flags);
	samples_writer_sample(s->context->writer, &sample);
	thread->process->deliveries++;
	thread->process->weight += sample.weight;
	perf_account_sampled(s->account, record->pid, sample.weight);
}

static void drain(struct perf_sampling *s, const struct process_table *table)
{
	struct perf_record record;

	while (perf_rings_next(s->rings, &record)) {
		if (record.type != PERF_RECORD_SAMPLE)
			perf_processes_note(s->processes, &record);
		else if (concerns(s, &record, table))
			take_sample(s, &record);
	}
}

static void perf_poll(void *state, const struct process_table *table, int64_t now)
{
	struct perf_sampling *s = state;

	if (!s->account)
		return;
	drain(s, table);
	if (now < s->account_due)
		return;
	s->account_due = now + ACCOUNT_EVERY_NS;
	perf_account_update(s->account, table, s->context->writer);
}

static void perf_end(void *state, const struct process_table *table, int64_t now)
{
	struct perf_sampling *s = state;
	uint64_t unreadable, lost;

	if (!s->account)
		return;
	drain(s, table);
	lost = perf_processes_lost(s->processes);
	if (lost)
		warnings_add(s->context->warnings,
			     "%" PRIu64 " of perf's records found no room in its rings: fewer samples a second, or "
			     "more memory that may be locked (ulimit -l), helps.",
			     lost);
	perf_account_update(s->account, table, s->context->writer);
	perf_account_finish(s->account, s->context->writer);
	perf_processes_free(s->processes, now);
	s->processes = NULL;
	unreadable = perf_rings_unreadable(s->rings) + s->unnamed;
	if (unreadable)
		warnings_add(s->context->warnings, "%" PRIu64 " of perf's records could not be used.", unreadable);
	perf_rings_close(s->rings);
	s->rings = NULL;
	perf_account_free(s->account);
	s->account = NULL;
}

const struct sampling_recorder perf_recorder = {
	.name = "perf",
	.wire = WIRE_RECORDER_PERF,
	.open = perf_open,
	.close = perf_close,
	.begin = perf_begin,
	.poll = perf_poll,
	.end = perf_end,
};
