#include "record/perf_processes.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/procfs.h"
#include "model/mask.h"
#include "record/code_maps.h"
#include "record/id_map.h"

#define COMMAND_MAX 512 /* bytes of a command line that are kept */

struct perf_processes {
	struct samples_writer *writer;
	struct perf_files *files;
	void (*ended)(void *context, const struct perf_process *p, int64_t t);
	void *context;
	struct id_map by_pid, by_tid;
	bool only;     /* what is not known does not count */
	uint64_t lost; /* records, up to now */
	uint32_t vdso; /* module; PERF_NONE: not yet */
};

struct perf_processes *perf_processes_new(struct samples_writer *writer, struct perf_files *files,
					  void (*ended)(void *context, const struct perf_process *p, int64_t t),
					  void *context)
{
	struct perf_processes *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->writer = writer;
	p->files = files;
	p->ended = ended;
	p->context = context;
	p->vdso = PERF_NONE;
	id_map_init(&p->by_pid);
	id_map_init(&p->by_tid);
	return p;
}

/* From now on it is another program, or none. */
static void end_image(struct perf_processes *p, struct perf_process *process, int64_t t)
{
	if (process->image != PERF_NONE)
		p->ended(p->context, process, t);
	process->image = process->anon = process->unknown = PERF_NONE;
	process->deliveries = process->weight = process->lost = 0;
	process->looked_up = 0;
	perf_codes_release(&process->code);
	free(process->exe);
	process->exe = NULL;
}

static void free_process(struct perf_processes *p, struct perf_process *process, int64_t t)
{
	end_image(p, process, t);
	id_map_remove(&p->by_pid, process->pid);
	free(process);
}

static void free_thread(struct perf_processes *p, struct perf_thread *thread)
{
	thread->process->threads--;
	id_map_remove(&p->by_tid, thread->tid);
	free(thread);
}

void perf_processes_free(struct perf_processes *p, int64_t now)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->by_tid.room; i++)
		free(p->by_tid.slots[i].value);
	for (size_t i = 0; i < p->by_pid.room; i++) {
		struct perf_process *process = p->by_pid.slots[i].value;

		if (process) {
			end_image(p, process, now);
			free(process);
		}
	}
	id_map_release(&p->by_tid);
	id_map_release(&p->by_pid);
	free(p);
}

static struct perf_process *add_process(struct perf_processes *p, int pid, int ppid, int64_t t)
{
	struct perf_process *process = calloc(1, sizeof *process);

	if (!process)
		return NULL;
	*process = (struct perf_process){
		.pid = pid, .ppid = ppid, .t = t, .image = PERF_NONE, .anon = PERF_NONE, .unknown = PERF_NONE};
	perf_codes_init(&process->code);
	if (!id_map_set(&p->by_pid, pid, process)) {
		free(process);
		return NULL;
	}
	return process;
}

static struct perf_thread *add_thread(struct perf_processes *p, struct perf_process *process, int tid, const char *name)
{
	struct perf_thread *thread = id_map_find(&p->by_tid, tid);

	if (thread) /* its end was not told, and its number is used again */
		free_thread(p, thread);
	thread = calloc(1, sizeof *thread);
	if (!thread)
		return NULL;
	*thread = (struct perf_thread){.tid = tid, .process = process, .id = PERF_NONE};
	snprintf(thread->name, sizeof thread->name, "%s", name);
	if (!id_map_set(&p->by_tid, tid, thread)) {
		free(thread);
		return NULL;
	}
	process->threads++;
	return thread;
}

/* Takes all threads of a process that was ended without their being told. */
static void forget_process(struct perf_processes *p, struct perf_process *process, int64_t t)
{
	for (size_t i = 0; i < p->by_tid.room && process->threads;) {
		struct perf_thread *thread = p->by_tid.slots[i].value;

		if (thread && thread->process == process)
			free_thread(p, thread); /* another one may have moved up to this place */
		else
			i++;
	}
	free_process(p, process, t);
}

void perf_processes_adopt(struct perf_processes *p, int pid, int64_t t)
{
	struct perf_process *process = id_map_find(&p->by_pid, pid);

	if (process)
		process->waits = false;
	else
		add_process(p, pid, 0, t);
}

void perf_processes_only(struct perf_processes *p, int pid, int64_t t)
{
	struct perf_process *process = add_process(p, pid, 0, t);

	p->only = true;
	if (process)
		process->waits = true;
}

bool perf_processes_count(const struct perf_processes *p, int pid)
{
	const struct perf_process *process = id_map_find(&p->by_pid, pid);

	return process && !process->waits;
}

static void note_fork(struct perf_processes *p, const struct perf_record *r)
{
	struct perf_process *process = id_map_find(&p->by_pid, r->pid);
	struct perf_process *parent = id_map_find(&p->by_pid, r->parent.ppid);
	struct perf_thread *forker = id_map_find(&p->by_tid, r->parent.ptid);

	if (r->pid != r->parent.ppid) {
		if (process)
			forget_process(p, process, r->t);
		if (p->only && !parent)
			return;
		process = add_process(p, r->pid, r->parent.ppid, r->t);
		forker = id_map_find(&p->by_tid, r->parent.ptid);
		if (process && parent) {
			perf_codes_copy(&process->code, &parent->code);
			process->exe = parent->exe ? strdup(parent->exe) : NULL;
		}
	} else if (!process && !p->only) {
		process = add_process(p, r->pid, 0, r->t);
	}
	if (process)
		add_thread(p, process, r->tid, forker ? forker->name : "");
}

static void note_exit(struct perf_processes *p, const struct perf_record *r)
{
	struct perf_thread *thread = id_map_find(&p->by_tid, r->tid);
	struct perf_process *process;

	if (!thread || thread->process->pid != r->pid)
		return;
	process = thread->process;
	free_thread(p, thread);
	if (process->threads == 0)
		free_process(p, process, r->t);
}

static void note_comm(struct perf_processes *p, const struct perf_record *r)
{
	struct perf_process *process = id_map_find(&p->by_pid, r->pid);
	struct perf_thread *thread;

	if (!process && !p->only)
		process = add_process(p, r->pid, 0, r->t);
	if (!process)
		return;
	thread = id_map_find(&p->by_tid, r->tid);
	if (!thread || thread->process != process)
		thread = add_thread(p, process, r->tid, r->comm.name);
	if (r->comm.exec) {
		process->waits = false;
		end_image(p, process, r->t);
		process->t = r->t;
		if (thread)
			thread->id = PERF_NONE;
	}
	if (!thread)
		return;
	snprintf(thread->name, sizeof thread->name, "%s", r->comm.name);
	if (thread->id != PERF_NONE)
		samples_writer_rename(p->writer, thread->id, thread->name);
}

static void add_code(struct perf_processes *p, struct perf_process *process, const struct perf_mapping *m)
{
	struct perf_code code = {.start = m->start, .end = m->start + m->length, .kind = PERF_CODE_ANON};
	bool program = false;

	if (strcmp(m->path, "[vdso]") == 0) {
		code.kind = PERF_CODE_VDSO;
		code.bias = m->start;
	} else if (m->path[0] == '/' && m->path[1] != '/') {
		/* The kernel maps a program before its loader. */
		program = !process->exe;
		if (program)
			process->exe = strdup(m->path);
		code.file = perf_files_find(p->files, process->pid, m, program);
		if (code.file) {
			code.kind = PERF_CODE_FILE;
			code.bias = perf_file_bias(code.file, m->start, m->offset);
		}
	}
	/* One that finds no room leaves its addresses unknown, which is what the profile then says. */
	perf_codes_add(&process->code, &code);
}

static void note_mapping(struct perf_processes *p, const struct perf_record *r)
{
	struct perf_process *process = id_map_find(&p->by_pid, r->pid);

	if (!process && !p->only)
		process = add_process(p, r->pid, 0, r->t);
	if (process && r->mapping.protection & PROT_EXEC)
		add_code(p, process, &r->mapping);
}

void perf_processes_note(struct perf_processes *p, const struct perf_record *record)
{
	struct perf_process *process;

	switch (record->type) {
	case PERF_RECORD_FORK:
		note_fork(p, record);
		break;
	case PERF_RECORD_EXIT:
		note_exit(p, record);
		break;
	case PERF_RECORD_COMM:
		note_comm(p, record);
		break;
	case PERF_RECORD_MMAP2:
		note_mapping(p, record);
		break;
	case PERF_RECORD_LOST:
		p->lost += record->lost;
		process = id_map_find(&p->by_pid, record->pid);
		if (process)
			process->lost += record->lost;
		break;
	default:
		break;
	}
}

/* What the process has mapped now, where that is not known already. */
static void look_up(struct perf_processes *p, struct perf_process *process)
{
	struct code_maps maps;
	char exe[PATH_MAX], path[64];
	ssize_t length;

	process->looked_up = p->lost + 1;
	if (!process->exe) {
		snprintf(path, sizeof path, "%s/%d/exe", procfs_root(), process->pid);
		length = readlink(path, exe, sizeof exe - 1);
		if (length > 0) {
			exe[length] = '\0';
			process->exe = strdup(exe);
		}
	}
	code_maps_init(&maps);
	if (code_maps_read(&maps, process->pid) == 0) {
		for (size_t i = 0; i < maps.count; i++) {
			const struct code_map *at = &maps.items[i];
			struct perf_mapping m = {.start = at->start, .length = at->end - at->start,
						 .offset = at->offset, .inode = at->inode, .path = at->path};

			if (!perf_codes_find(&process->code, at->start))
				add_code(p, process, &m);
		}
	}
	code_maps_release(&maps);
}

/* Its command line with secrets masked; "" where it is gone. */
static void read_command(int pid, struct buf *ret)
{
	char text[COMMAND_MAX];
	ssize_t length = procfs_read_file(text, sizeof text, "%d/cmdline", pid);

	while (length > 0 && text[length - 1] == '\0')
		length--;
	for (ssize_t i = 0; i < length; i++)
		if (text[i] == '\0')
			text[i] = ' ';
	if (length > 0)
		mask_text(ret, text);
}

static void define_image(struct perf_processes *p, struct perf_process *process)
{
	CLEANUP(buf_release) struct buf command;

	buf_init(&command);
	if (!process->exe)
		look_up(p, process);
	read_command(process->pid, &command);
	process->image = samples_writer_image(p->writer, process->pid, process->ppid, process->t, process->exe,
					      command.text);
}

/* One whose beginning was not told. */
static struct perf_thread *late_thread(struct perf_processes *p, struct perf_process *process, int tid)
{
	char name[32];
	ssize_t length = procfs_read_file(name, sizeof name, "%d/task/%d/comm", process->pid, tid);

	if (length > 0 && name[length - 1] == '\n')
		name[length - 1] = '\0';
	return add_thread(p, process, tid, length > 0 ? name : "");
}

struct perf_thread *perf_processes_thread(struct perf_processes *p, int pid, int tid, int64_t t)
{
	struct perf_process *process = id_map_find(&p->by_pid, pid);
	struct perf_thread *thread = id_map_find(&p->by_tid, tid);

	if (!process)
		process = add_process(p, pid, 0, t);
	if (!process)
		return NULL;
	if (!thread || thread->process != process)
		thread = late_thread(p, process, tid);
	if (!thread)
		return NULL;
	if (process->image == PERF_NONE)
		define_image(p, process);
	if (thread->id == PERF_NONE)
		thread->id = samples_writer_thread(p->writer, process->image, tid, thread->name);
	return thread;
}

uint64_t perf_processes_lost(const struct perf_processes *p)
{
	return p->lost;
}

const struct perf_code *perf_process_code(struct perf_processes *p, struct perf_process *process, uint64_t address)
{
	const struct perf_code *found = perf_codes_find(&process->code, address);

	if (!found && (p->lost || !process->code.count) && process->looked_up != p->lost + 1) {
		look_up(p, process);
		found = perf_codes_find(&process->code, address);
	}
	return found;
}

uint32_t perf_process_module(struct perf_processes *p, struct perf_process *process, const struct perf_code *code)
{
	if (code && code->kind == PERF_CODE_FILE)
		return perf_file_module(code->file);
	if (code && code->kind == PERF_CODE_VDSO) {
		if (p->vdso == PERF_NONE)
			p->vdso = samples_writer_module(p->writer, &(struct wire_module){.kind = WIRE_MODULE_VDSO},
							"linux-vdso.so.1");
		return p->vdso;
	}
	if (code) {
		if (process->anon == PERF_NONE)
			process->anon = samples_writer_module(
				p->writer,
				&(struct wire_module){.kind = WIRE_MODULE_ANON, .image = process->image}, "");
		return process->anon;
	}
	if (process->unknown == PERF_NONE)
		process->unknown = samples_writer_module(
			p->writer, &(struct wire_module){.kind = WIRE_MODULE_UNKNOWN, .image = process->image}, "");
	return process->unknown;
}
