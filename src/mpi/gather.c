/* Brings what ranks on other machines have recorded to rank 0, in pieces of at most 1 MiB: so neither memory nor a file
 * system that all share is needed. A folder that rank 0 sees is left alone; of a folder that several ranks record into,
 * one sends. Files keep their names, which no two processes share; what is there already is never written over. */
#include "mpi/tool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "wire/regions.h"

#define PIECE_MAX (1u << 20)

enum piece_kind {
	PIECE_FILE, /* its name follows */
	PIECE_DATA, /* bytes at `offset` follow: holes are not sent */
	PIECE_END,  /* the file is `offset` bytes long */
	PIECE_BAD,  /* the file could not be read to its end: it is to be forgotten */
	PIECE_DONE, /* nothing more from this rank */
};

struct piece {
	uint64_t offset;
	uint32_t kind, length;
};

/* What a rank has to send, for rank 0 to choose the senders. */
struct offer {
	struct tool_boot boot;
	uint64_t device, inode;
	int wants; /* it has recordings that rank 0 does not see, and memory for a piece */
};

/* A file of rank 0 that is just being received. */
struct arrival {
	int folder, fd; /* fd -1: what comes is thrown away */
	char name[NAME_MAX + 1];
};

static bool is_recording(const char *name)
{
	return strncmp(name, REGION_FILE_PREFIX, strlen(REGION_FILE_PREFIX)) == 0;
}

static bool send_piece(uint32_t kind, uint64_t offset, const void *bytes, uint32_t length)
{
	struct piece piece = {.kind = kind, .offset = offset, .length = length};

	return PMPI_Send(&piece, (int)sizeof piece, MPI_BYTE, 0, TOOL_TAG, tool.comm) == MPI_SUCCESS &&
	       (length == 0 || PMPI_Send(bytes, (int)length, MPI_BYTE, 0, TOOL_TAG, tool.comm) == MPI_SUCCESS);
}

/* The bytes of [from, to) in pieces; false where they cannot be read or sent. */
static bool send_span(int fd, off_t from, off_t to, char *buffer)
{
	while (from < to) {
		size_t wanted = to - from < (off_t)PIECE_MAX ? (size_t)(to - from) : PIECE_MAX;
		ssize_t got = pread(fd, buffer, wanted, from);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0 || !send_piece(PIECE_DATA, (uint64_t)from, buffer, (uint32_t)got))
			return false;
		from += got;
	}
	return true;
}

/* Most of such a file is holes: room for regions and histograms that never came. */
static void send_file(int folder, const char *name, char *buffer)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	bool good;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		if (fd >= 0)
			close(fd);
		return;
	}
	good = send_piece(PIECE_FILE, 0, name, (uint32_t)strlen(name));
	for (off_t at = 0; good && at < st.st_size;) {
		off_t data = lseek(fd, at, SEEK_DATA), hole;

		if (data < 0 && errno == ENXIO)
			break;
		hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
		if (hole < 0) { /* a file system that knows no holes */
			data = at;
			hole = st.st_size;
		}
		at = hole < st.st_size ? hole : st.st_size;
		good = send_span(fd, data, at, buffer);
	}
	send_piece(good ? PIECE_END : PIECE_BAD, (uint64_t)st.st_size, NULL, 0);
	close(fd);
}

static void send_all(const char *folder, char *buffer)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (is_recording(entry->d_name))
			send_file(dirfd(dir), entry->d_name, buffer);
	if (dir)
		closedir(dir);
	send_piece(PIECE_DONE, 0, NULL, 0);
}

/* Neither a full disk nor a limit on the sizes of files may raise a signal here. */
static bool write_piece(int fd, const char *bytes, size_t length, uint64_t offset)
{
	struct rlimit limit;

	if (offset > INT64_MAX - length || getrlimit(RLIMIT_FSIZE, &limit) < 0 || offset + length > limit.rlim_cur)
		return false;
	while (length) {
		ssize_t done = pwrite(fd, bytes, length, (off_t)offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		bytes += done;
		length -= (size_t)done;
		offset += (uint64_t)done;
	}
	return true;
}

static void give_up(struct arrival *a)
{
	if (a->fd < 0)
		return;
	close(a->fd);
	a->fd = -1;
	unlinkat(a->folder, a->name, 0);
}

static void begin_file(struct arrival *a, const char *name, size_t length)
{
	give_up(a);
	if (length >= sizeof a->name)
		return;
	memcpy(a->name, name, length);
	a->name[length] = '\0';
	if (!is_recording(a->name) || strchr(a->name, '/'))
		return;
	a->fd = openat(a->folder, a->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

static void end_file(struct arrival *a, uint64_t size)
{
	struct rlimit limit;

	if (a->fd < 0)
		return;
	if (size > INT64_MAX || getrlimit(RLIMIT_FSIZE, &limit) < 0 || size > limit.rlim_cur ||
	    ftruncate(a->fd, (off_t)size) < 0) {
		give_up(a);
		return;
	}
	close(a->fd);
	a->fd = -1;
}

/* Takes all that a rank sends, also where it can be kept no more: the sender waits for nobody. */
static void receive_all(int rank, int folder, char *buffer)
{
	struct arrival a = {.folder = folder, .fd = -1};
	struct piece piece;

	for (;;) {
		if (PMPI_Recv(&piece, (int)sizeof piece, MPI_BYTE, rank, TOOL_TAG, tool.comm, MPI_STATUS_IGNORE) !=
			    MPI_SUCCESS ||
		    piece.length > PIECE_MAX)
			break;
		if (piece.length && PMPI_Recv(buffer, (int)piece.length, MPI_BYTE, rank, TOOL_TAG, tool.comm,
					      MPI_STATUS_IGNORE) != MPI_SUCCESS)
			break;
		if (piece.kind == PIECE_DONE)
			break;
		if (piece.kind == PIECE_FILE)
			begin_file(&a, buffer, piece.length);
		else if (piece.kind == PIECE_END)
			end_file(&a, piece.offset);
		else if (piece.kind == PIECE_BAD ||
			 (a.fd >= 0 && !write_piece(a.fd, buffer, piece.length, piece.offset)))
			give_up(&a);
	}
	give_up(&a);
}

/* A file of rank 0 by which others know its folder, on whatever path and machine they see it. */
static void name_probe(char *name, size_t size)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	snprintf(name, size, ".assay-rank-0-%ld-%lld-%ld", (long)getpid(), (long long)t.tv_sec, t.tv_nsec);
}

static void make_offer(struct offer *offer, const char *folder, const char *probe, const char *buffer)
{
	char *path = NULL;
	struct stat st;

	memset(offer, 0, sizeof *offer);
	if (!folder || !buffer || stat(folder, &st) < 0 || asprintf(&path, "%s/%s", folder, probe) < 0)
		return;
	tool_boot_read(&offer->boot);
	offer->device = (uint64_t)st.st_dev;
	offer->inode = (uint64_t)st.st_ino;
	offer->wants = access(path, F_OK) != 0;
	free(path);
}

/* The first of those who record into one folder of one machine sends. */
static void choose(const struct offer *offers, int *chosen)
{
	for (int rank = 0; rank < tool.size; rank++) {
		chosen[rank] = rank > 0 && offers[rank].wants;
		for (int before = rank - 1; chosen[rank] && before > 0; before--)
			if (offers[before].wants && offers[before].device == offers[rank].device &&
			    offers[before].inode == offers[rank].inode &&
			    strcmp(offers[before].boot.id, offers[rank].boot.id) == 0)
				chosen[rank] = 0;
	}
}

/* Rank 0's part. The offers and choices of all are its own; without memory for them nobody sends. */
static void gather_here(const char *folder, char *probe, char *buffer)
{
	struct offer *offers = calloc((size_t)tool.size, sizeof *offers), own;
	int *chosen = calloc((size_t)tool.size, sizeof *chosen), fd = -1, mine = 0;
	int at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int able = offers && chosen && buffer && at >= 0;

	if (able)
		fd = openat(at, probe, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	/* Where not even an empty file can be made, there is no room for others'. */
	if (fd < 0)
		*probe = '\0';
	PMPI_Bcast(probe, NAME_MAX + 1, MPI_BYTE, 0, tool.comm);
	if (fd >= 0) {
		make_offer(&own, folder, probe, buffer);
		PMPI_Gather(&own, (int)sizeof own, MPI_BYTE, offers, (int)sizeof own, MPI_BYTE, 0, tool.comm);
		choose(offers, chosen);
		PMPI_Scatter(chosen, 1, MPI_INT, &mine, 1, MPI_INT, 0, tool.comm);
		close(fd);
		unlinkat(at, probe, 0);
		for (int rank = 1; rank < tool.size; rank++)
			if (chosen[rank])
				receive_all(rank, at, buffer);
	}
	if (at >= 0)
		close(at);
	free(offers);
	free(chosen);
}

void gather_recordings(const char *folder)
{
	char probe[NAME_MAX + 1] = "", *buffer = malloc(PIECE_MAX);
	struct offer offer;
	int chosen = 0;

	if (tool.rank == 0) {
		/* Also that all have ended their recording: rank 0 merges what lies in its own folder. */
		PMPI_Barrier(tool.comm);
		name_probe(probe, sizeof probe);
		gather_here(folder, probe, buffer);
		free(buffer);
		return;
	}
	PMPI_Barrier(tool.comm);
	if (PMPI_Bcast(probe, (int)sizeof probe, MPI_BYTE, 0, tool.comm) == MPI_SUCCESS && *probe) {
		make_offer(&offer, folder, probe, buffer);
		PMPI_Gather(&offer, (int)sizeof offer, MPI_BYTE, NULL, 0, MPI_BYTE, 0, tool.comm);
		PMPI_Scatter(NULL, 0, MPI_INT, &chosen, 1, MPI_INT, 0, tool.comm);
		if (chosen)
			send_all(folder, buffer);
	}
	free(buffer);
}
