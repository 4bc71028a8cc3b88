/* Any bytes as the measurement of this machine: it is taken, found to be another's, or refused with its name, and what
 * is taken can be. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "store/peakfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct peak_identity id = {"m", "c", "h", 2, 2, 1024};
	char folder[] = "/tmp/assay-fuzz-XXXXXX";
	struct bandwidth b;
	struct error err = {""};
	struct buf path;
	int result;

	require(mkdtemp(folder) && setenv("XDG_CACHE_HOME", folder, 1) == 0);
	buf_init(&path);
	require(peakfile_path(&id, &path));
	*strrchr(path.text, '/') = '\0';
	require(fs_make_dirs(path.text, NULL) == 0);
	path.text[strlen(path.text)] = '/';
	require(fs_write_file(path.text, data, size, NULL) == 0);
	result = peakfile_load(&id, &b, &err);
	require((result < 0) == (err.text[0] != '\0'));
	if (result == 0)
		require(b.one > 0 && b.one < 1e13 && b.all > 0 && b.all < 1e13 && b.threads > 0);
	require(unlink(path.text) == 0);
	*strrchr(path.text, '/') = '\0';
	require(rmdir(path.text) == 0 && rmdir(folder) == 0);
	buf_release(&path);
	return 0;
}
