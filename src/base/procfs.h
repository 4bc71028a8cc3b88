/* The text files of /proc and /sys: opened below a root, read without allocating, scanned without sscanf.
 *
 * It knows the shapes of these files (a number after a key, the line of /proc/PID/stat), and nothing of what they are
 * read for. Text need not be valid in any way: it may be cut, binary or empty. */
#ifndef ASSAY_BASE_PROCFS_H
#define ASSAY_BASE_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Where the two trees are; "/proc" and "/sys" unless a test has set other folders (borrowed; NULL: the default). */
void procfs_set_roots(const char *proc, const char *sys);
const char *procfs_root(void);
const char *sysfs_root(void);

/* Opens a file or folder below the root for reading, close-on-exec. The descriptor, or -errno. */
int procfs_open(const char *format, ...) __attribute__((format(printf, 1, 2)));
int sysfs_open(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reads from the start of an open file: what one read gives (enough for a file of one record, and the cheapest), or all
 * of it. At most size - 1 bytes; a 0 is put behind them. The length, or -errno. */
ssize_t procfs_read_record(int fd, char *text, size_t size);
ssize_t procfs_read_all(int fd, char *text, size_t size);

/* Opens, reads all, closes. The length, or -errno. */
ssize_t procfs_read_file(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
ssize_t sysfs_read_file(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The first line of a file in /sys, without blanks at its end; "" where there is none. */
void sysfs_read_word(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Calls `each` for every process that has a folder in `proc_fd` (an open /proc, read from its start), in any order,
 * until it returns false. 0 or -errno. */
int procfs_each_pid(int proc_fd, bool (*each)(void *context, int pid), void *context);

/* A decimal number at *at, after blanks; false where there is none or it does not fit. Moves *at behind it. */
bool scan_u64(const char **at, const char *end, uint64_t *ret);

/* Moves *at over `count` words and the blanks before them; false where there are not so many. */
bool scan_words(const char **at, const char *end, size_t count);

/* A number after a word at the start of a line, e.g. {"VmSwap:"} or {"pgmajfault"}. */
struct scan_key {
	const char *name; /* with its colon, where it has one */
	uint64_t value;
	bool found;
};

/* Fills the keys from the text and returns how many were found. A last line that does not end may have been cut in the
 * middle of its number, so it is left out. */
size_t scan_keys(const char *text, size_t length, struct scan_key *keys, size_t count);

/* The fields of /proc/PID/stat that are in use. */
struct proc_stat {
	int ppid;
	char state;       /* R S D Z X ... */
	const char *comm; /* inside the text; any bytes, blanks and parentheses too */
	size_t comm_length;
	uint64_t minor_faults, major_faults;
	uint64_t user_ticks, system_ticks; /* of sysconf(_SC_CLK_TCK) */
	/* The same of the children that it has waited for. */
	uint64_t children_minor_faults, children_major_faults, children_user_ticks, children_system_ticks;
	uint64_t threads, start_ticks;
};

bool proc_stat_scan(const char *text, size_t length, struct proc_stat *ret);

/* It has ended, though its parent has not asked for its status yet. (Where only the first thread has ended, the state
 * is Z too, but other threads are counted.) */
bool proc_stat_ended(const struct proc_stat *stat);

#endif
