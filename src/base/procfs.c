#include "base/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *proc_root = "/proc", *sys_root = "/sys";

void procfs_set_roots(const char *proc, const char *sys)
{
	proc_root = proc ? proc : "/proc";
	sys_root = sys ? sys : "/sys";
}

const char *procfs_root(void)
{
	return proc_root;
}

const char *sysfs_root(void)
{
	return sys_root;
}

static int open_below(const char *root, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

static int open_below(const char *root, const char *format, va_list args)
{
	char path[PATH_MAX];
	int start = snprintf(path, sizeof path, "%s/", root), length;

	if (start < 0 || (size_t)start >= sizeof path)
		return -ENAMETOOLONG;
	length = vsnprintf(path + start, sizeof path - (size_t)start, format, args);
	if (length < 0 || (size_t)length >= sizeof path - (size_t)start)
		return -ENAMETOOLONG;
	/* Without O_NONBLOCK, a pipe in a test's folder would hang the open. */
	start = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return start < 0 ? -errno : start;
}

int procfs_open(const char *format, ...)
{
	va_list args;
	int fd;

	va_start(args, format);
	fd = open_below(proc_root, format, args);
	va_end(args);
	return fd;
}

int sysfs_open(const char *format, ...)
{
	va_list args;
	int fd;

	va_start(args, format);
	fd = open_below(sys_root, format, args);
	va_end(args);
	return fd;
}

ssize_t procfs_read_record(int fd, char *text, size_t size)
{
	ssize_t length;

	do
		length = pread(fd, text, size - 1, 0);
	while (length < 0 && errno == EINTR);
	if (length < 0)
		return -errno;
	text[length] = '\0';
	return length;
}

ssize_t procfs_read_all(int fd, char *text, size_t size)
{
	size_t done = 0;

	/* The kernel fills at most a page of a list at a time, however large the buffer. */
	while (done < size - 1) {
		ssize_t got = pread(fd, text + done, size - 1 - done, (off_t)done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	text[done] = '\0';
	return (ssize_t)done;
}

static ssize_t read_and_close(int fd, char *text, size_t size)
{
	ssize_t length = fd < 0 ? fd : procfs_read_all(fd, text, size);

	if (fd >= 0)
		close(fd);
	return length;
}

ssize_t procfs_read_file(char *text, size_t size, const char *format, ...)
{
	va_list args;
	int fd;

	va_start(args, format);
	fd = open_below(proc_root, format, args);
	va_end(args);
	return read_and_close(fd, text, size);
}

ssize_t sysfs_read_file(char *text, size_t size, const char *format, ...)
{
	va_list args;
	int fd;

	va_start(args, format);
	fd = open_below(sys_root, format, args);
	va_end(args);
	return read_and_close(fd, text, size);
}

void sysfs_read_word(char *text, size_t size, const char *format, ...)
{
	va_list args;
	ssize_t length;
	int fd;

	va_start(args, format);
	fd = open_below(sys_root, format, args);
	va_end(args);
	length = read_and_close(fd, text, size);
	text[length > 0 ? length : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	for (size_t end = strlen(text); end > 0 && (text[end - 1] == ' ' || text[end - 1] == '\t'); end--)
		text[end - 1] = '\0';
}

/* The pid that the name of a folder in /proc is, or 0. */
static int pid_of_name(const char *name)
{
	int pid = 0;

	for (; *name >= '0' && *name <= '9' && pid < INT_MAX / 10 - 1; name++)
		pid = 10 * pid + (*name - '0');
	return *name ? 0 : pid;
}

/* As the kernel writes it; getdents64 spares readdir's allocation and its copy of each entry. */
struct directory_entry {
	uint64_t inode;
	int64_t next;
	unsigned short size;
	unsigned char type;
	char name[];
};

int procfs_each_pid(int proc_fd, bool (*each)(void *context, int pid), void *context)
{
	_Alignas(struct directory_entry) char entries[4096];

	if (lseek(proc_fd, 0, SEEK_SET) < 0)
		return -errno;
	for (;;) {
		long got = syscall(SYS_getdents64, proc_fd, entries, sizeof entries);

		if (got <= 0)
			return got < 0 ? -errno : 0;
		for (long at = 0; at < got;) {
			const struct directory_entry *entry =
				(const struct directory_entry *)(const void *)(entries + at);
			int pid = pid_of_name(entry->name);

			if (pid > 0 && !each(context, pid))
				return 0;
			at += entry->size;
		}
	}
}

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	return at;
}

bool scan_u64(const char **at, const char *end, uint64_t *ret)
{
	const char *digit = skip_blanks(*at, end);
	uint64_t value = 0;

	if (digit == end || *digit < '0' || *digit > '9')
		return false;
	for (; digit < end && *digit >= '0' && *digit <= '9'; digit++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*digit - '0'), &value))
			return false;
	*at = digit;
	*ret = value;
	return true;
}

bool scan_words(const char **at, const char *end, size_t count)
{
	for (; count > 0; count--) {
		const char *word = skip_blanks(*at, end);

		*at = word;
		while (*at < end && **at != ' ' && **at != '\t' && **at != '\n')
			(*at)++;
		if (*at == word)
			return false;
	}
	return true;
}

static size_t scan_line(const char *line, const char *end, struct scan_key *keys, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t length;
		const char *number;

		if (keys[i].name[0] != line[0] || keys[i].found)
			continue;
		length = strlen(keys[i].name);
		if ((size_t)(end - line) <= length || memcmp(line, keys[i].name, length) != 0)
			continue;
		number = line + length;
		if ((*number == ' ' || *number == '\t') && scan_u64(&number, end, &keys[i].value)) {
			keys[i].found = true;
			return 1;
		}
	}
	return 0;
}

size_t scan_keys(const char *text, size_t length, struct scan_key *keys, size_t count)
{
	const char *end = text + length, *line_end;
	size_t found = 0;

	for (size_t i = 0; i < count; i++)
		keys[i].found = false;
	for (const char *line = text; found < count && line < end; line = line_end + 1) {
		line_end = memchr(line, '\n', (size_t)(end - line));
		if (!line_end)
			break;
		found += scan_line(line, line_end, keys, count);
	}
	return found;
}

bool proc_stat_scan(const char *text, size_t length, struct proc_stat *ret)
{
	const char *end = text + length, *open = memchr(text, '(', length), *close = memrchr(text, ')', length), *at;
	struct proc_stat s = {0};
	uint64_t ppid;

	/* Field 2 is what the process calls itself and may hold anything, so the last parenthesis ends it. */
	if (!open || !close || close < open || end - close < 4 || close[1] != ' ')
		return false;
	s.comm = open + 1;
	s.comm_length = (size_t)(close - open - 1);
	s.state = close[2];
	at = close + 3;
	if (!scan_u64(&at, end, &ppid) || ppid > INT_MAX)
		return false;
	s.ppid = (int)ppid;
	/* Fields 5 to 9 of proc_pid_stat(5) are not wanted, nor are 18 and 19, which may be negative, nor 21. */
	if (!scan_words(&at, end, 5) || !scan_u64(&at, end, &s.minor_faults) ||
	    !scan_u64(&at, end, &s.children_minor_faults) || !scan_u64(&at, end, &s.major_faults) ||
	    !scan_u64(&at, end, &s.children_major_faults) || !scan_u64(&at, end, &s.user_ticks) ||
	    !scan_u64(&at, end, &s.system_ticks) || !scan_u64(&at, end, &s.children_user_ticks) ||
	    !scan_u64(&at, end, &s.children_system_ticks) || !scan_words(&at, end, 2) ||
	    !scan_u64(&at, end, &s.threads) || !scan_words(&at, end, 1) || !scan_u64(&at, end, &s.start_ticks))
		return false;
	/* A number at the very end may have been cut. */
	if (at == end)
		return false;
	*ret = s;
	return true;
}

bool proc_stat_ended(const struct proc_stat *stat)
{
	return (stat->state == 'Z' || stat->state == 'X' || stat->state == 'x') && stat->threads <= 1;
}
