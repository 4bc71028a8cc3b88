#include "record/preload_target.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/procfs.h"

char *preload_check(const char *found, const char *name, struct error *err)
{
	char *path = fs_absolute(found);

	if (!path) {
		error_set(err, "out of memory for the path of %s", name);
		return NULL;
	}
	/* The loader splits LD_PRELOAD there, and expands $. */
	if (strpbrk(path, " :$")) {
		error_set(err, "%s cannot be preloaded, since its path holds a blank, a colon or a dollar sign", path);
		free(path);
		return NULL;
	}
	return path;
}

char *preload_find_library(struct error *err)
{
	CLEANUP(free_cleanup) char *found = fs_find_companion(SAMPLER_LIBRARY);

	if (!found) {
		error_set(err, "%s is neither beside the program nor in %s: CPU samples need it", SAMPLER_LIBRARY,
			  ASSAY_PLUGIN_DIR);
		return NULL;
	}
	return preload_check(found, SAMPLER_LIBRARY, err);
}

/* What the target's environment has for the name: the caller's, unless `env` sets it. */
static const char *present(const char *const *env, const char *name)
{
	size_t length = strlen(name);
	const char *value = getenv(name);

	for (; env && *env; env++)
		if (strncmp(*env, name, length) == 0 && (*env)[length] == '=')
			value = *env + length + 1;
	return value && *value ? value : NULL;
}

static char *format(const char *text, ...) __attribute__((format(printf, 1, 2)));

static char *format(const char *text, ...)
{
	va_list args;
	char *line;
	int length;

	va_start(args, text);
	length = vasprintf(&line, text, args);
	va_end(args);
	return length < 0 ? NULL : line;
}

char **preload_lines(const char *library, const char *const *env, const char *first, const char *second)
{
	const char *preload = present(env, "LD_PRELOAD"), *asan = present(env, "ASAN_OPTIONS");
	char **lines = calloc(5, sizeof *lines);

	if (!lines)
		return NULL;
	lines[0] = format("LD_PRELOAD=%s%s%s", library, preload ? ":" : "", preload ? preload : "");
	/* A program built with a shared AddressSanitizer refuses to run where another library comes first. */
	lines[1] = format("ASAN_OPTIONS=%s%sverify_asan_link_order=0", asan ? asan : "", asan ? ":" : "");
	lines[2] = strdup(first);
	lines[3] = second ? strdup(second) : NULL;
	if (!lines[0] || !lines[1] || !lines[2] || (second && !lines[3])) {
		for (size_t i = 0; i < 4; i++)
			free(lines[i]);
		free(lines);
		return NULL;
	}
	return lines;
}

char **preload_environment(const char *library, const char *folder, unsigned hz, const char *const *env)
{
	CLEANUP(free_cleanup) char *to = format("%s=%s", SAMPLER_DIR_VARIABLE, folder);
	CLEANUP(free_cleanup) char *rate = format("%s=%u", SAMPLER_HZ_VARIABLE, hz);

	return to && rate ? preload_lines(library, env, to, rate) : NULL;
}

void preload_environment_free(char **environment)
{
	for (char **line = environment; line && *line; line++)
		free(*line);
	free(environment);
}

/* Whether that pid is the ring's process, and who its parent is. */
static bool is_process_of(const struct ring *ring, int pid, int *ret_ppid)
{
	char text[512];
	ssize_t length = procfs_read_file(text, sizeof text, "%d/stat", pid);
	struct proc_stat stat;

	if (length <= 0 || !proc_stat_scan(text, (size_t)length, &stat) || proc_stat_ended(&stat))
		return false;
	if (ring->start_ticks && stat.start_ticks != ring->start_ticks)
		return false;
	*ret_ppid = stat.ppid;
	return true;
}

/* The pid that the process has for itself: the last one of "NSpid:". */
static int inner_pid(int pid)
{
	char text[4096];
	ssize_t length = procfs_read_file(text, sizeof text, "%d/status", pid);
	const char *line = length > 0 ? strstr(text, "\nNSpid:") : NULL;
	int last = 0;

	if (!line)
		return 0;
	line += 7;
	for (char *end; *line != '\n'; line = end) {
		long value = strtol(line, &end, 10);

		if (end == line)
			break;
		last = (int)value;
	}
	return last;
}

int preload_find_pid(const struct ring *ring, const struct process_table *table, int *ret_ppid)
{
	if (ring->pid > 0 && is_process_of(ring, ring->pid, ret_ppid))
		return ring->pid;
	for (size_t i = 0; ring->start_ticks && i < table->count; i++) {
		const struct process *p = &table->items[i];

		if (!p->alive || (uint64_t)p->start_ticks != ring->start_ticks || inner_pid(p->pid) != ring->pid)
			continue;
		*ret_ppid = p->ppid;
		return p->pid;
	}
	return 0;
}

bool preload_in_table(const struct ring *ring, int pid, const struct process_table *table)
{
	/* Only the search takes a table that is not const, for what it returns. */
	const struct process *p = process_find((struct process_table *)table, pid);

	return p && ring->start_ticks && (uint64_t)p->start_ticks == ring->start_ticks;
}

bool preload_lives(const struct ring *ring, int pid)
{
	int ppid;

	return pid > 0 && is_process_of(ring, pid, &ppid);
}
