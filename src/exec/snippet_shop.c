#include "exec/snippet.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "exec/snippet_texts.h"

static int put_file(const char *folder, const char *name, const char *first, const char *second, struct error *err)
{
	CLEANUP(free_cleanup) char *path = fs_join(folder, name);
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	buf_puts(&text, first);
	buf_puts(&text, second);
	if (!path || text.failed)
		return error_set(err, "out of memory for the snippet's files");
	return fs_write_file(path, text.text, text.length, err);
}

int snippet_shop_open(struct snippet_shop *shop, struct timed *timed, const volatile int *stop, struct error *err)
{
	const char *below = getenv("TMPDIR");
	CLEANUP(free_cleanup) char *path = fs_join(below && *below ? below : "/tmp", "assay-timeit-XXXXXX");
	CLEANUP(free_cleanup) char *whole = path ? fs_absolute(path) : NULL;

	if (!whole)
		return error_set(err, "out of memory for the name of a temporary folder");
	if (!mkdtemp(whole))
		return error_set(err, "no temporary folder can be made as %s: %s; TMPDIR names another place", whole,
				 strerror(errno));
	*shop = (struct snippet_shop){.timed = timed, .stop = stop, .folder = whole};
	whole = NULL;
	if (put_file(shop->folder, "snippet_runner.h", snippet_runner_h, "", err) < 0 ||
	    put_file(shop->folder, "assay_measure.h", assay_measure_h, "", err) < 0 ||
	    put_file(shop->folder, "runner.c", snippet_runner_h, snippet_runner_c, err) < 0) {
		snippet_shop_close(shop);
		return -1;
	}
	return 0;
}

void snippet_shop_close(struct snippet_shop *shop)
{
	DIR *dir = shop->folder ? opendir(shop->folder) : NULL;

	if (dir) {
		for (struct dirent *entry; (entry = readdir(dir));)
			if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
				unlinkat(dirfd(dir), entry->d_name, 0);
		closedir(dir);
		rmdir(shop->folder);
	}
	free(shop->folder);
	*shop = (struct snippet_shop){0};
}
