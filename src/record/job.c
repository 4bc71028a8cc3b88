#include "record/job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/parse.h"
#include "record/job_result.h"

#define RANKS_MAX 10000000
#define POINTER_MAX 4096
#define LOCK_NAME "job.json"
#define PRESENCE_NAME "job.present"

static const struct {
	const char *rank, *size, *job;
} launchers[] = {
#define RANK_ENV(rank, size, job) {rank, size, job},
#include "wire/rank_env.h"
#undef RANK_ENV
};

void job_init(struct job *j)
{
	*j = (struct job){.present = -1};
}

void job_release(struct job *j)
{
	free(j->id);
	free(j->path);
	free(j->rank_path);
	free(j->lock);
	free(j->presence);
	free(j->pointer);
	fd_cleanup(&j->present);
	job_init(j);
}

static bool read_number(const char *name, int64_t *ret)
{
	const char *text = *name ? getenv(name) : NULL;

	return text && parse_i64(text, ret) && *ret >= 0 && *ret <= RANKS_MAX;
}

bool job_find(struct job *j)
{
	for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
		int64_t rank, size;
		const char *id;

		if (!read_number(launchers[i].rank, &rank) || !read_number(launchers[i].size, &size) || rank >= size ||
		    size < 2)
			continue;
		id = *launchers[i].job ? getenv(launchers[i].job) : NULL;
		j->rank = (int)rank;
		j->size = (int)size;
		j->id = strdup(id ? id : "");
		return j->id != NULL;
	}
	return false;
}

/* Opens and locks a file that others may remove meanwhile. Not kept locked while a command runs. */
static int open_locked(const char *path, struct error *err)
{
	for (;;) {
		int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666), code;
		struct stat st;

		if (fd < 0)
			return error_set(err, "%s: %s", path, strerror(errno));
		while (flock(fd, LOCK_EX) < 0)
			if (errno != EINTR) {
				code = errno;
				close(fd);
				return error_set(err, "%s: it cannot be locked: %s", path, strerror(code));
			}
		if (fstat(fd, &st) == 0 && st.st_nlink > 0)
			return fd;
		close(fd);
	}
}

/* That this rank's recorder lives, the others see by a lock on its byte of a file. Such a lock is the process's own: no
 * child has it, and it goes however the process goes, on whatever machine. It also goes when the process opens the file
 * once more and closes it, so nothing else is done with that file. */
static int be_present(struct job *j, struct error *err)
{
	struct flock mine = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = j->rank, .l_len = 1};

	fd_cleanup(&j->present);
	j->present = open(j->presence, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (j->present < 0)
		return error_set(err, "%s: %s", j->presence, strerror(errno));
	if (fcntl(j->present, F_SETLK, &mine) < 0)
		return error_set(err, "%s: it cannot be locked: %s", j->presence, strerror(errno));
	return 0;
}

bool job_rank_lives(const struct job *j, int rank)
{
	struct flock theirs = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};

	return fcntl(j->present, F_GETLK, &theirs) == 0 && theirs.l_type != F_UNLCK;
}

/* 1 where the folder holds nothing but the locks, 0 where it holds more, -1 where it cannot be read. */
static int holds_only_lock(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int answer = 1;

	if (!dir)
		return -1;
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    strcmp(entry->d_name, LOCK_NAME) != 0 && strcmp(entry->d_name, PRESENCE_NAME) != 0)
			answer = 0;
	closedir(dir);
	return answer;
}

static int name_files(struct job *j, const char *path, struct error *err)
{
	free(j->path);
	free(j->rank_path);
	free(j->lock);
	free(j->presence);
	j->rank_path = j->lock = j->presence = NULL;
	j->path = fs_absolute(path);
	if (!j->path || asprintf(&j->rank_path, "%s/rank-%d", j->path, j->rank) < 0) {
		j->rank_path = NULL;
		return error_set(err, "%s: out of memory", path);
	}
	j->lock = fs_join(j->path, LOCK_NAME);
	j->presence = fs_join(j->path, PRESENCE_NAME);
	return j->lock && j->presence ? 0 : error_set(err, "%s: out of memory", path);
}

static int in_use(const char *path, struct error *err)
{
	error_set(err, "%s: exists and is not empty; a run directory is never overwritten", path);
	return RECORD_USAGE;
}

/* What the first rank notes, for the others to know that the folder is theirs. */
static int sign(const struct job *j, int fd, struct error *err)
{
	CLEANUP(json_cleanup) json_t *object = json_object();
	CLEANUP(free_cleanup) char *text = NULL;
	int problem;

	json_put_text(object, "id", j->id);
	json_put_integer(object, "size", j->size);
	text = object ? json_print(object) : NULL;
	if (!text)
		return error_set(err, "%s: out of memory", j->lock);
	problem = fs_write_all(fd, text, strlen(text));
	return problem ? error_set(err, "%s: %s", j->lock, strerror(-problem)) : 0;
}

static bool is_ours(const struct job *j)
{
	CLEANUP(json_cleanup) json_t *object = json_read_file(j->lock, NULL);
	CLEANUP(free_cleanup) char *result = fs_join(j->path, "run.json");
	const char *id = json_get_text(object, "id", "");

	if (!object || !result || json_get_number(object, "size", 0) != j->size || strcmp(id, j->id) != 0)
		return false;
	/* Without a name for the job, an old one looks like this one: but that has a result. */
	return !fs_exists(j->rank_path) && (*id || !fs_exists(result));
}

/* Takes the rank's place in a folder that is there. */
static int take(struct job *j, const char *path, struct error *err)
{
	CLEANUP(fd_cleanup) int fd = -1;
	struct stat st;
	int alone;

	if (name_files(j, path, err) < 0)
		return RECORD_TROUBLE;
	/* Somebody's folder gets no lock from us. */
	if (!fs_exists(j->lock) && fs_dir_is_empty(j->path, NULL) == 0)
		return in_use(path, err);
	fd = open_locked(j->lock, err);
	if (fd < 0)
		return RECORD_TROUBLE;
	if (fstat(fd, &st) == 0 && st.st_size > 0) {
		if (!is_ours(j))
			return in_use(path, err);
		return be_present(j, err) < 0 ? RECORD_TROUBLE : RECORD_OK;
	}
	alone = holds_only_lock(j->path);
	if (alone == 1 && be_present(j, err) == 0 && sign(j, fd, err) == 0)
		return RECORD_OK;
	unlink(j->lock);
	if (alone == 0)
		return in_use(path, err);
	if (alone < 0)
		error_set(err, "%s: the folder cannot be read", path);
	return RECORD_TROUBLE;
}

/* The folder that another rank of this job has made and named in the file behind fd. */
static bool take_named(struct job *j, const char *pointer)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	return fs_read_file(pointer, POINTER_MAX, &text, NULL) == 0 && text.length && fs_is_dir(text.text) &&
	       take(j, text.text, NULL) == RECORD_OK;
}

/* DATE differs from rank to rank: the first one here makes the folder and leaves its name to the others. */
static int take_default(struct job *j, const char *label, struct error *err)
{
	CLEANUP(free_cleanup) char *tag = rundir_tag(*j->id ? j->id : "unnamed");
	CLEANUP(free_cleanup) char *made = NULL;
	CLEANUP(fd_cleanup) int fd = -1;
	int problem;

	if (fs_make_dirs("assay-runs", err) < 0)
		return RECORD_TROUBLE;
	if (!tag || asprintf(&j->pointer, "assay-runs/.job-%s", tag) < 0) {
		j->pointer = NULL;
		error_set(err, "out of memory for the job's folder");
		return RECORD_TROUBLE;
	}
	fd = open_locked(j->pointer, err);
	if (fd < 0)
		return RECORD_TROUBLE;
	if (take_named(j, j->pointer))
		return RECORD_OK;
	if (rundir_make_default(label, clock_wall_ns(), &made, err) != RUNDIR_OK)
		return RECORD_TROUBLE;
	problem = take(j, made, err);
	if (problem == RECORD_OK && (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0 ||
				     fs_write_all(fd, j->path, strlen(j->path)) < 0)) {
		error_set(err, "%s: %s", j->pointer, strerror(errno));
		return RECORD_TROUBLE;
	}
	return problem;
}

int job_join(struct job *j, const char *out, const char *label, struct error *err)
{
	if (!out)
		return take_default(j, label, err);
	if (!*out) {
		error_set(err, "the run directory's name is empty");
		return RECORD_USAGE;
	}
	if (fs_exists(out) && !fs_is_dir(out)) {
		error_set(err, "%s: exists and is not a folder; a run directory is never written over it", out);
		return RECORD_USAGE;
	}
	if (fs_make_dirs(out, err) < 0)
		return RECORD_TROUBLE;
	return take(j, out, err);
}

void job_leave(struct job *j)
{
	CLEANUP(fd_cleanup) int fd = j->lock && fs_exists(j->lock) ? open_locked(j->lock, NULL) : -1;

	fd_cleanup(&j->present);
	if (fd < 0 || holds_only_lock(j->path) != 1)
		return;
	if (j->pointer)
		unlink(j->pointer);
	unlink(j->presence);
	unlink(j->lock);
	rmdir(j->path);
}

int job_open(struct job *j, const char *path, struct error *err)
{
	CLEANUP(json_cleanup) json_t *object = NULL;
	double size;

	if (!fs_is_dir(path))
		return 0;
	if (name_files(j, path, err) < 0)
		return -1;
	if (!fs_exists(j->lock))
		return 0;
	object = json_read_file(j->lock, err);
	if (!object)
		return -1;
	size = json_get_number(object, "size", 0);
	if (!(size >= 2 && size <= RANKS_MAX))
		return error_set(err, "%s: it does not say of how many ranks the job is", j->lock);
	j->size = (int)size;
	free(j->id);
	j->id = strdup(json_get_text(object, "id", ""));
	if (!j->id)
		return error_set(err, "%s: out of memory", j->lock);
	/* Not there: all have ended. */
	fd_cleanup(&j->present);
	j->present = open(j->presence, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return 1;
}

/* Whether all others have ended. One that never was here is waited for, unless this one's own end says that the job has
 * failed: then it may never come. */
static bool is_last(const struct job *j, enum run_status status)
{
	for (int rank = 0; rank < j->size; rank++) {
		CLEANUP(free_cleanup) char *folder = NULL, *result = NULL;
		bool begun;

		if (rank == j->rank)
			continue;
		if (asprintf(&folder, "%s/rank-%d", j->path, rank) < 0) {
			folder = NULL;
			return false;
		}
		result = fs_join(folder, "run.json");
		if (!result)
			return false;
		if (fs_exists(result))
			continue;
		begun = fs_is_dir(folder);
		if (job_rank_lives(j, rank) || (!begun && status == RUN_OK))
			return false;
	}
	return true;
}

/* With the lock held. */
static int make_result(struct job *j, struct record_result *ret, struct error *err)
{
	if (job_result_make(j, ret, err) < 0)
		return -1;
	if (!json_object_get(json_object_get(ret->json, "job"), "missing"))
		unlink(j->presence);
	if (j->pointer)
		unlink(j->pointer);
	return 0;
}

int job_recover(struct job *j, struct record_result *ret, struct error *err)
{
	CLEANUP(fd_cleanup) int fd = open_locked(j->lock, err);

	return fd < 0 ? -1 : make_result(j, ret, err);
}

int job_finish(struct job *j, enum run_status status, struct record_result *ret, struct error *err)
{
	CLEANUP(fd_cleanup) int fd = open_locked(j->lock, err);

	if (fd < 0)
		return -1;
	/* Where several end at once, the first of them finds all results and does it for the others. */
	if (!fs_exists(j->presence) || !is_last(j, status))
		return 0;
	return make_result(j, ret, err) < 0 ? -1 : 1;
}
