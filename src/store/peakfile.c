#include "store/peakfile.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fs.h"

#define SCHEMA 1
#define SIZE_MOST 65536 /* of the file; it takes less than 1 KiB */
#define RATE_MAX 1e13 /* bytes per second; what is more was not measured of any machine */
#define SPREAD_MAX 1e6
#define THREADS_MAX 65536
#define SECONDS_MAX 1e6

static uint64_t hash(const char *text, size_t length)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	for (size_t i = 0; i < length; i++)
		h = (h ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
	return h;
}

/* The folder of caches; a relative one is ignored, as the XDG specification asks. */
static bool append_folder(struct buf *to)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (cache && *cache == '/')
		buf_printf(to, "%s/assay", cache);
	else if (home && *home == '/')
		buf_printf(to, "%s/.cache/assay", home);
	else
		return false;
	return true;
}

bool peakfile_path(const struct peak_identity *id, struct buf *ret)
{
	CLEANUP(buf_release) struct buf joined;

	buf_init(&joined);
	buf_printf(&joined, "%s\n%s\n%s\n%d\n%d\n%.0f", id->machine_id, id->cpu_model, id->hypervisor, id->cpus,
		   id->cpus_allowed, id->memory_bytes);
	if (!append_folder(ret))
		return false;
	buf_printf(ret, "/machine-%016" PRIx64 ".json", hash(joined.text, joined.length));
	return !joined.failed && !ret->failed;
}

static json_t *identity_json(const struct peak_identity *id)
{
	json_t *o = json_object();

	json_put_text(o, "machine_id", id->machine_id);
	json_put_text(o, "cpu_model", id->cpu_model);
	json_put_text(o, "hypervisor", id->hypervisor);
	json_put_integer(o, "cpus", id->cpus);
	json_put_integer(o, "cpus_allowed", id->cpus_allowed);
	json_put_number(o, "memory_bytes", id->memory_bytes);
	return o;
}

json_t *bandwidth_json(const struct bandwidth *b)
{
	json_t *o = json_object();
	char when[40];

	clock_iso8601(b->wall_ns, when, sizeof when);
	if (b->one > 0) {
		json_put_number(o, "one_bytes_per_s", b->one);
		json_put_number(o, "one_spread", b->one_spread);
	}
	if (b->all > 0) {
		json_put_number(o, "all_bytes_per_s", b->all);
		json_put_number(o, "all_spread", b->all_spread);
	}
	json_put_integer(o, "threads", b->threads);
	json_put_number(o, "touched_bytes_per_s", b->touched);
	if (b->cache_bytes > 0)
		json_put_number(o, "cache_bytes", b->cache_bytes);
	json_put_number(o, "took_s", b->took_s);
	json_put_text(o, "measured_at", when);
	json_put_integer(o, "wall_ns", b->wall_ns);
	json_put_bool(o, "quiet", b->quiet);
	return o;
}

/* A number in [0, most), or the fallback where the key is absent. Clears *good where it is anything else. */
static double number_of(const json_t *object, const char *key, double most, double fallback, bool *good)
{
	const json_t *value = json_object_get(object, key);
	double number = json_number_value(value);

	if (!value)
		return fallback;
	if (json_is_number(value) && number >= 0 && number < most)
		return number;
	*good = false;
	return fallback;
}

static int64_t integer_of(const json_t *object, const char *key, int64_t most, bool *good)
{
	const json_t *value = json_object_get(object, key);

	if (json_is_integer(value) && json_integer_value(value) >= 0 && json_integer_value(value) < most)
		return json_integer_value(value);
	*good = false;
	return 0;
}

int bandwidth_from_json(const json_t *object, struct bandwidth *ret)
{
	struct bandwidth b = {0};
	bool good = json_is_object(object);

	b.one = number_of(object, "one_bytes_per_s", RATE_MAX, 0, &good);
	b.all = number_of(object, "all_bytes_per_s", RATE_MAX, 0, &good);
	b.one_spread = number_of(object, "one_spread", SPREAD_MAX, NAN, &good);
	b.all_spread = number_of(object, "all_spread", SPREAD_MAX, NAN, &good);
	b.threads = (int)integer_of(object, "threads", THREADS_MAX, &good);
	b.touched = number_of(object, "touched_bytes_per_s", RATE_MAX, NAN, &good);
	b.cache_bytes = number_of(object, "cache_bytes", RATE_MAX, 0, &good);
	b.took_s = number_of(object, "took_s", SECONDS_MAX, NAN, &good);
	b.wall_ns = integer_of(object, "wall_ns", INT64_MAX, &good);
	b.quiet = json_is_true(json_object_get(object, "quiet"));
	if (!good || b.one <= 0 || b.all <= 0 || b.threads < 1)
		return -1;
	*ret = b;
	return 0;
}

int peakfile_load(const struct peak_identity *id, struct bandwidth *ret, struct error *err)
{
	CLEANUP(buf_release) struct buf path;
	CLEANUP(json_cleanup) json_t *root = NULL;
	CLEANUP(json_cleanup) json_t *wanted = NULL;
	struct stat st;
	const json_t *schema;

	buf_init(&path);
	if (!peakfile_path(id, &path))
		return path.failed ? error_set(err, "out of memory") : 1;
	if (stat(path.text, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? 1
			       : error_set(err, "%s: %s", path.text, strerror(errno));
	/* A pipe would be waited for, a device has no end. */
	if (!S_ISREG(st.st_mode) || st.st_size > SIZE_MOST)
		return error_set(err, "%s: this is no file of assay's; remove it", path.text);
	root = json_read_file(path.text, err);
	if (!root)
		return -1;
	schema = json_object_get(root, "schema");
	if (!json_is_integer(schema))
		return error_set(err, "%s: this is no measurement of a machine", path.text);
	wanted = identity_json(id);
	if (json_integer_value(schema) != SCHEMA || !json_equal(json_object_get(root, "machine"), wanted))
		return 1;
	if (bandwidth_from_json(json_object_get(root, "bandwidth"), ret) < 0)
		return error_set(err, "%s: \"bandwidth\" lacks numbers, or has some that cannot be", path.text);
	return 0;
}

int peakfile_save(const struct peak_identity *id, const struct bandwidth *b, struct error *err)
{
	CLEANUP(buf_release) struct buf path, folder;
	CLEANUP(json_cleanup) json_t *root = NULL;
	struct stat st;

	buf_init(&path);
	buf_init(&folder);
	if (!peakfile_path(id, &path) || !append_folder(&folder) || folder.failed)
		return error_set(err, "the measurement cannot be kept: %s",
				 path.failed || folder.failed ? "out of memory"
							      : "neither $XDG_CACHE_HOME nor $HOME names a folder");
	if (fs_make_dirs(folder.text, err) < 0)
		return -1;
	root = json_object();
	json_put_integer(root, "schema", SCHEMA);
	json_object_set_new(root, "machine", identity_json(id));
	json_object_set_new(root, "bandwidth", bandwidth_json(b));
	if (lstat(path.text, &st) == 0 && !S_ISREG(st.st_mode))
		return error_set(err, "%s: this is no file of assay's; remove it", path.text);
	if (json_write_file(path.text, root, err) < 0)
		return -1;
	if (chmod(path.text, 0600) < 0)
		return error_set(err, "%s: %s", path.text, strerror(errno));
	return 0;
}
