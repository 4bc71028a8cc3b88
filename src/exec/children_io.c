#include "exec/children_io.h"

#include <stdbool.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/procfs.h"

#define TRIES 5

/* Of one thread; tid 0: of the process, its reaped children included. */
static bool read_io(struct children_io *ret, int tid)
{
	struct scan_key keys[] = {{"rchar:"}, {"wchar:"}, {"syscr:"}, {"syscw:"}};
	char text[512];
	ssize_t length = tid ? procfs_read_file(text, sizeof text, "self/task/%d/io", tid)
			     : procfs_read_file(text, sizeof text, "self/io");

	if (length <= 0 || scan_keys(text, (size_t)length, keys, 4) != 4)
		return false;
	*ret = (struct children_io){(int64_t)keys[0].value, (int64_t)keys[1].value, (int64_t)keys[2].value,
				    (int64_t)keys[3].value};
	return true;
}

static bool add_thread(void *context, int tid)
{
	struct children_io *sum = context, one;

	if (!read_io(&one, tid))
		return true;
	sum->read_chars += one.read_chars;
	sum->write_chars += one.write_chars;
	sum->read_calls += one.read_calls;
	sum->write_calls += one.write_calls;
	return true;
}

static bool read_threads(struct children_io *ret)
{
	int folder = procfs_open("self/task"), failed;

	if (folder < 0)
		return false;
	*ret = (struct children_io){0};
	failed = procfs_each_pid(folder, add_thread, ret);
	close(folder);
	return failed == 0;
}

void children_io_read(struct children_io *ret)
{
	struct children_io before, all, after;

	*ret = (struct children_io){-1, -1, -1, -1};
	/* The pumps go on meanwhile: the readings fit together when none of them did anything in between. This thread's
	 * own reading counts too, a few hundred bytes of it. */
	for (int i = 0; i < TRIES; i++) {
		if (!read_threads(&before) || !read_io(&all, 0) || !read_threads(&after))
			return;
		*ret = (struct children_io){
			.read_chars = all.read_chars - before.read_chars,
			.write_chars = all.write_chars - before.write_chars,
			.read_calls = all.read_calls - before.read_calls,
			.write_calls = all.write_calls - before.write_calls,
		};
		if (after.write_chars == before.write_chars)
			return;
	}
}
