#include "source/cgroup_find.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fs.h"
#include "base/procfs.h"

#define MOUNTS_MAX ((size_t)16 << 20)

/* Whether `word` is one of the words of a list that `separator` separates. */
static bool lists(const char *list, size_t length, char separator, const char *word)
{
	size_t wanted = strlen(word);

	for (const char *at = list, *end = list + length; at <= end;) {
		const char *next = memchr(at, separator, (size_t)(end - at));
		size_t here = (size_t)((next ? next : end) - at);

		if (here == wanted && memcmp(at, word, here) == 0)
			return true;
		if (!next)
			break;
		at = next + 1;
	}
	return false;
}

/* From lines "NUMBER:CONTROLLER,CONTROLLER:PATH"; version 2 is "0::PATH". Cuts `text` where the path ends. */
static char *group_of(char *text, const char *controller)
{
	char *line, *rest = text;

	while ((line = strsep(&rest, "\n"))) {
		char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!path)
			continue;
		controllers++;
		if (*controller ? lists(controllers, (size_t)(path - controllers), ',', controller)
				: path == controllers && strncmp(line, "0:", 2) == 0)
			return path + 1;
	}
	return NULL;
}

/* Blanks and the like stand in mountinfo as a backslash and three octal digits. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *at = text; *at; to++) {
		if (at[0] == '\\' && at[1] >= '0' && at[1] <= '3' && at[2] >= '0' && at[2] <= '7' && at[3] >= '0' &&
		    at[3] <= '7') {
			*to = (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0'));
			at += 4;
		} else {
			*to = *at++;
		}
	}
	*to = '\0';
}

struct mount {
	char *root, *point; /* what part of the hierarchy is mounted, and where */
};

/* "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS ... - TYPE SOURCE OPTIONS". Changes the line; false: not the one wanted. */
static bool scan_mount(char *line, const char *controller, struct mount *ret)
{
	char *words[5], *type = strstr(line, " - "), *options, *rest = line;

	if (!type)
		return false;
	*type = '\0';
	type += 3;
	options = strrchr(type, ' ');
	if (!options)
		return false;
	if (*controller ? strncmp(type, "cgroup ", 7) != 0 || !lists(options + 1, strlen(options + 1), ',', controller)
			: strncmp(type, "cgroup2 ", 8) != 0)
		return false;
	for (size_t i = 0; i < 5; i++) {
		words[i] = strsep(&rest, " ");
		if (!words[i])
			return false;
	}
	*ret = (struct mount){words[3], words[4]};
	unescape(ret->root);
	unescape(ret->point);
	return true;
}

/* What is left of `path` below `root`, or NULL where it is not below it. */
static const char *below(const char *path, const char *root)
{
	size_t length = strlen(root);

	if (strcmp(root, "/") == 0)
		return path;
	if (strncmp(path, root, length) != 0 || (path[length] && path[length] != '/'))
		return NULL;
	return path + length;
}

static bool has(const struct cgroup_folder *folder, const char *name)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof path, "%s/%s", folder->path, name) < (int)sizeof path && access(path, F_OK) == 0;
}

/* Fills *ret where that mount shows the group. */
static bool look_in_mount(const struct mount *mount, const char *group, const char *controller,
			  struct cgroup_folder *ret)
{
	const char *rest = below(group, mount->root);
	int length;

	/* A path that climbs lies outside of what this process may see. */
	if (!rest || strncmp(rest, "/..", 3) == 0)
		return false;
	if (strcmp(rest, "/") == 0)
		rest = "";
	length = snprintf(ret->path, sizeof ret->path, "%s%s", mount->point, rest);
	if (length < 0 || length >= (int)sizeof ret->path || access(ret->path, F_OK) != 0)
		return false;
	ret->top = strlen(mount->point);
	/* Only roots lack the one and have the other; in a container's own namespace "/" need not be the root. */
	ret->root = *controller ? has(ret, "cgroup.sane_behavior") : !has(ret, "cgroup.events");
	return true;
}

/* Fills *ret for the version 1 controller, or for version 2 (""); path "" where there is none. */
static int find_one(const char *membership, const struct buf *mounts_text, const char *controller,
		    struct cgroup_folder *ret, struct error *err)
{
	CLEANUP(buf_release) struct buf groups, mounts;
	char *group, *line, *rest;

	buf_init(&groups);
	buf_init(&mounts);
	*ret = (struct cgroup_folder){0};
	/* Both are cut up. */
	buf_puts(&groups, membership);
	buf_append(&mounts, mounts_text->text, mounts_text->length);
	if (groups.failed || mounts.failed)
		return error_set(err, "out of memory for the mounts");
	group = group_of(groups.text, controller);
	rest = mounts.text;
	while (group && (line = strsep(&rest, "\n"))) {
		struct mount mount;

		if (scan_mount(line, controller, &mount) && look_in_mount(&mount, group, controller, ret))
			return 0;
	}
	ret->path[0] = '\0';
	return 0;
}

int cgroup_find(const char *membership, struct cgroup_place *ret, struct error *err)
{
	CLEANUP(buf_release) struct buf mounts;
	char path[PATH_MAX];

	buf_init(&mounts);
	if (snprintf(path, sizeof path, "%s/self/mountinfo", procfs_root()) >= (int)sizeof path)
		return error_set(err, "%s/self/mountinfo: the path is too long", procfs_root());
	if (fs_read_file(path, MOUNTS_MAX, &mounts, err) < 0 ||
	    find_one(membership, &mounts, "memory", &ret->memory, err) < 0 ||
	    find_one(membership, &mounts, "cpu", &ret->cpu, err) < 0 ||
	    find_one(membership, &mounts, "cpuacct", &ret->cpuacct, err) < 0 ||
	    find_one(membership, &mounts, "", &ret->unified, err) < 0)
		return -1;
	return 0;
}

int cgroup_open_in(const struct cgroup_folder *folder, const char *name)
{
	char path[PATH_MAX];
	int fd;

	if (snprintf(path, sizeof path, "%s/%s", folder->path, name) >= (int)sizeof path)
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

bool cgroup_usable(const struct cgroup_folder *folder)
{
	return folder->path[0] && !folder->root;
}
