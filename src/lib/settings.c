/* What the environment asks for: where to record, what, and how much. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/last_error.h"
#include "lib/recording.h"

#define LIMIT_DEFAULT (UINT64_C(8) << 30)

static const char *const mode_names[] = {"off", "count", "aggregate", "trace"};

int settings_resolve(const char *dir, char ret_path[PATH_MAX])
{
	char path[PATH_MAX];
	struct stat st;

	if (!realpath(dir, path) || stat(path, &st) < 0)
		return last_error_set("%s: %s", dir, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return last_error_set("%s: regions are recorded into a folder, and this is none", dir);
	memcpy(ret_path, path, sizeof path);
	return 0;
}

int settings_parse_limit(const char *text, uint64_t *ret)
{
	static const char units[] = "KMGT";
	const char *unit;
	uint64_t value = 0;

	if (*text < '0' || *text > '9')
		return -1;
	for (; *text >= '0' && *text <= '9'; text++) {
		if (value > UINT64_MAX / 100)
			return -1;
		value = value * 10 + (uint64_t)(*text - '0');
	}
	unit = *text ? strchr(units, *text & ~0x20) : NULL;
	if (*text && (!unit || text[1]))
		return -1;
	for (const char *step = units; unit && step <= unit; step++) {
		if (value > UINT64_MAX >> 12)
			return -1;
		value <<= 10;
	}
	if (value == 0)
		return -1;
	*ret = value;
	return 0;
}

static void read_mode(void)
{
	const char *text = secure_getenv("ASSAY_REGIONS");

	settings.mode = REGION_TRACE;
	if (!text || !*text)
		return;
	for (uint32_t i = 0; i < sizeof mode_names / sizeof *mode_names; i++)
		if (strcmp(text, mode_names[i]) == 0) {
			settings.mode = i;
			return;
		}
	settings.complaint = "ASSAY_REGIONS is none of trace, aggregate, count and off: taken as trace";
}

static void read_limit(void)
{
	const char *text = secure_getenv("ASSAY_LIMIT");

	settings.limit = LIMIT_DEFAULT;
	if (text && *text && settings_parse_limit(text, &settings.limit) < 0)
		settings.complaint = "ASSAY_LIMIT is no number of bytes, like 500M or 8G: taken as 8G";
}

bool settings_from_environment(void)
{
	const char *dir = secure_getenv("ASSAY_DIR");

	settings.complaint = NULL;
	read_mode();
	read_limit();
	if (!dir || !*dir) {
		last_error_set("nothing is being recorded: ASSAY_DIR is not set");
		return false;
	}
	return settings_resolve(dir, settings.dir) == 0;
}
