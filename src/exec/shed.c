#include "exec/shed.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"

#define SMAPS_MAX ((size_t)1 << 20) /* some 1,500 mappings */
#define CLEAN_MAX 64

/* One mapping while its lines go by. */
struct mapping {
	unsigned long from, to;
	int is_file, is_writable;
};

/* "55d0c000-55d0d000 r-xp 00000000 fe:00 1234   /path" */
static int read_heading(const char *line, struct mapping *m)
{
	char permissions[5] = "";
	unsigned long from, to, inode;

	if (sscanf(line, "%lx-%lx %4s %*x %*x:%*x %lu", &from, &to, permissions, &inode) != 4)
		return 0;
	*m = (struct mapping){from, to, inode != 0, permissions[1] == 'w'};
	return 1;
}

/* The mappings whose pages are all still in their files: one that was written to, by relocation for example, would be
 * lost. How many. */
static size_t find_clean(const char *smaps, struct mapping *found)
{
	struct mapping m = {0};
	size_t n = 0;

	for (const char *line = smaps; *line && n < CLEAN_MAX; line += strcspn(line, "\n"), line += *line == '\n') {
		unsigned long kib;

		if (read_heading(line, &m))
			continue;
		if (sscanf(line, "Anonymous: %lu", &kib) == 1 && kib == 0 && m.is_file && !m.is_writable)
			found[n++] = m;
	}
	return n;
}

/* Memory by mmap, so that it is gone afterwards. */
void shed_pages(void)
{
	CLEANUP(fd_cleanup) int smaps = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
	CLEANUP(fd_cleanup) int peak = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
	char *text = mmap(NULL, SMAPS_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mapping clean[CLEAN_MAX];
	size_t used = 0, count;
	ssize_t got;

	if (text == MAP_FAILED)
		return;
	while (smaps >= 0 && used + 1 < SMAPS_MAX && (got = read(smaps, text + used, SMAPS_MAX - 1 - used)) > 0)
		used += (size_t)got;
	count = find_clean(text, clean);
	munmap(text, SMAPS_MAX);
	/* Only now, since finding them takes many pages itself. */
	for (size_t i = 0; i < count; i++)
		madvise((void *)clean[i].from, clean[i].to - clean[i].from, MADV_DONTNEED);
	/* 5: the high-water mark starts anew. Without that, peaks are those of before: see the header. */
	if (peak >= 0)
		(void)!write(peak, "5", 1);
}
