/* What is known of the process when its recording begins, for the file's metadata. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/recording.h"

#define TEXT_MAX 4096u
#define VALUE_MAX 60000u /* bytes of a variable's value */

extern char **environ;

/* The beginning of a small file; returns its length, 0 where it cannot be read. */
static size_t read_text(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t length = fd < 0 ? -1 : read(fd, text, room - 1);

	if (fd >= 0)
		close(fd);
	text[length > 0 ? length : 0] = '\0';
	return length > 0 ? (size_t)length : 0;
}

static void fact(const char *key, const char *value)
{
	const char *const texts[] = {key, value};

	if (value && *value)
		table_append(REGION_RECORD_METADATA, NULL, 0, texts, 2);
}

static void write_process(struct recording *r)
{
	char command[TEXT_MAX], host[256] = "";
	const char *const texts[] = {host, command};
	struct region_process process = {
		.layout = REGION_LAYOUT_VERSION,
		.clock = settings.tsc ? REGION_CLOCK_TSC : REGION_CLOCK_MONOTONIC,
		.pid = getpid(),
		.ppid = getppid(),
		.mono_ns = monotonic_ns(),
		.limit = settings.limit,
		.nonce = r->nonce,
		.mode = settings.mode,
	};
	size_t length = read_text("/proc/self/cmdline", command, sizeof command);
	struct timespec wall;

	for (size_t i = 0; i + 1 < length; i++)
		if (command[i] == '\0' || command[i] == '\n')
			command[i] = ' ';
	clock_gettime(CLOCK_REALTIME, &wall);
	process.wall_ns = (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec;
	read_text("/proc/sys/kernel/random/boot_id", process.boot_id, sizeof process.boot_id);
	process.boot_id[strcspn(process.boot_id, "\n")] = '\0';
	if (gethostname(host, sizeof host - 1) < 0)
		host[0] = '\0';
	table_append(REGION_RECORD_PROCESS, &process, sizeof process, texts, 2);
}

static void write_processor(void)
{
	char text[TEXT_MAX], *line, *value;

	read_text("/proc/cpuinfo", text, sizeof text);
	line = strstr(text, "model name");
	value = line ? strchr(line, ':') : NULL;
	if (!value)
		return;
	value += 1 + strspn(value + 1, " \t");
	value[strcspn(value, "\n")] = '\0';
	fact("chip_information", value);
}

static void write_machine(void)
{
	char text[sizeof(struct utsname) + 8], number[24], folder[PATH_MAX];
	struct utsname name;

	if (uname(&name) == 0) {
		snprintf(text, sizeof text, "%s %s %s %s %s", name.sysname, name.nodename, name.release, name.version,
			 name.machine);
		fact("platform", name.sysname);
		fact("uname", text);
	}
	snprintf(number, sizeof number, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
	fact("total_cores", number);
	if (getcwd(folder, sizeof folder))
		fact("working_directory", folder);
	fact("user", getenv("USER") ? getenv("USER") : getenv("LOGNAME"));
	fact("omp_num_threads", getenv("OMP_NUM_THREADS"));
	write_processor();
}

static void write_variables(void)
{
	for (char **entry = environ; entry && *entry; entry++) {
		const char *value = strchr(*entry, '=');
		size_t length = value ? (size_t)(value - *entry) : 0;
		char key[128];

		if (length == 0 || length >= sizeof key || strnlen(value, VALUE_MAX) == VALUE_MAX)
			continue;
		if (strncmp(*entry, "OMP_", 4) != 0 && strncmp(*entry, "SLURM_", 6) != 0)
			continue;
		memcpy(key, *entry, length);
		key[length] = '\0';
		fact(key, value + 1);
	}
}

void facts_write(struct recording *r)
{
	int rank = 0, size = 1;
	uint32_t source = 0;

	write_process(r);
	table_clock();
	if (settings.has_rank) {
		rank = settings.rank;
		size = settings.size;
		source = 2;
	} else if (rank_of_environment(&rank, &size)) {
		source = 1;
	}
	table_rank(rank, size, source);
	write_machine();
	write_variables();
	fact("libassay_note", settings.complaint);
}
