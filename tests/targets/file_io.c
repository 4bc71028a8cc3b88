/* file_io HOW FILE SECONDS: one kind of work on a file, again and again. HOW is one of
 *   read    drops the file's pages and reads it by read(2)
 *   map     drops the file's pages and reads it through a mapping
 *   again   reads it through one mapping, over and over, and drops nothing: phase "first" once, then phase "again"
 *   sync    writes 1 MiB to it, past the page cache, and waits until that is on the disk
 * Prints how many bytes per second it used. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "planted.h"

#define CHUNK (1 << 20)

static unsigned char chunk[CHUNK] __attribute__((aligned(4096))); /* O_DIRECT asks for that */

static void give_up(const char *what)
{
	fprintf(stderr, "file_io: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void drop(int fd)
{
	int failed = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);

	if (failed) {
		errno = failed;
		give_up("posix_fadvise");
	}
}

static double read_whole(int fd, size_t size)
{
	double bytes = 0;
	ssize_t n;

	(void)size;
	drop(fd);
	while ((n = pread(fd, chunk, CHUNK, (off_t)bytes)) > 0)
		bytes += (double)n;
	if (n < 0)
		give_up("read");
	return bytes;
}

/* One byte of each page: enough to need it. */
static double look_through(const unsigned char *memory, size_t size)
{
	unsigned sum = 0;

	for (size_t i = 0; i < size; i += 4096)
		sum += memory[i];
	keep(sum);
	return (double)size;
}

static unsigned char *map(int fd, size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		give_up("mmap");
	return memory;
}

/* A page that is mapped somewhere is not dropped, so there is a new mapping each time. */
static double map_whole(int fd, size_t size)
{
	unsigned char *memory;
	double bytes;

	drop(fd);
	memory = map(fd, size);
	bytes = look_through(memory, size);
	munmap(memory, size);
	return bytes;
}

static double map_again(int fd, size_t size)
{
	static unsigned char *memory;

	if (!memory) {
		memory = map(fd, size);
		phase("first");
		look_through(memory, size);
		phase("again");
	}
	return look_through(memory, size);
}

static double write_chunk(int fd, size_t size)
{
	(void)size;
	if (pwrite(fd, chunk, CHUNK, 0) != CHUNK)
		give_up("write");
	return CHUNK;
}

static const struct {
	const char *name;
	int flags;
	double (*once)(int fd, size_t size); /* returns the bytes used */
} kinds[] = {
	{"read", O_RDONLY, read_whole},
	{"map", O_RDONLY, map_whole},
	{"again", O_RDONLY, map_again},
	{"sync", O_RDWR | O_DIRECT | O_DSYNC, write_chunk},
};

int main(int argc, char **argv)
{
	double began = seconds_now(), bytes = 0;
	size_t kind = 0, size;
	int fd;

	while (argc == 4 && kind < sizeof kinds / sizeof *kinds && strcmp(argv[1], kinds[kind].name) != 0)
		kind++;
	if (argc != 4 || kind == sizeof kinds / sizeof *kinds) {
		fprintf(stderr, "file_io: read|map|again|sync FILE SECONDS\n");
		return 2;
	}
	fd = open(argv[2], kinds[kind].flags | O_CLOEXEC);
	if (fd < 0)
		give_up(argv[2]);
	size = (size_t)lseek(fd, 0, SEEK_END);
	do
		bytes += kinds[kind].once(fd, size);
	while (seconds_now() < began + atof(argv[3]));
	printf("%.0f\n", bytes / (seconds_now() - began));
	return 0;
}
