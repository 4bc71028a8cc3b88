#include "record/profiling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "store/profile_file.h"
#include "store/samples.h"
#include "symbol/symbols.h"

static int module_fd(void *context, uint32_t module)
{
	return sampling_module_fd(context, module);
}

static void note_damage(const struct profile *p, struct warnings *warnings)
{
	if (p->damaged)
		warnings_add(warnings, "CPU samples are incomplete: %s.", p->trouble);
}

static void resolve(const struct rundir *dir, struct profile *p, struct sampling *sampling, const volatile int *hurry,
		    struct run *run)
{
	struct symbols_options options = {
		.module_fd = sampling ? module_fd : NULL,
		.context = sampling,
		.hurry = hurry,
	};
	struct error why;

	if (symbols_resolve(p, &options, &run->warnings, &why) < 0)
		warnings_add(&run->warnings, "The CPU profile has no names of functions: %s.", why.text);
	rundir_clear_way(dir->profile_json);
	if (profile_file_write(dir->profile_json, p, &why) < 0)
		warnings_add(&run->warnings, "The names of the CPU profile were not kept: %s.", why.text);
}

int profiling_finish(const struct rundir *dir, struct sampling *sampling, const volatile int *hurry, struct run *run,
		     struct error *err)
{
	struct profile *p = malloc(sizeof *p);

	if (!p)
		return error_set(err, "out of memory for the CPU profile");
	profile_init(p);
	if (samples_read(dir->samples_seg, p, err) < 0) {
		profile_release(p);
		free(p);
		return -1;
	}
	note_damage(p, &run->warnings);
	resolve(dir, p, sampling, hurry, run);
	run->profile = p;
	return 0;
}

/* Where there are no names, the module tells where the code was. */
static int name_places(struct profile *p, struct error *err)
{
	for (size_t i = 0; i < p->location_count; i++) {
		uint32_t module = p->locations[i].module;
		CLEANUP(free_cleanup) char *name = NULL;
		struct profile_frame frame = {0};

		if (p->locations[i].count)
			continue;
		if (asprintf(&name, "%s!?", p->modules[module].name) < 0) {
			name = NULL;
			return error_set(err, "out of memory for the CPU profile");
		}
		if (profile_add_function(p, module, false, name, NULL, 0, &frame.function, err) < 0 ||
		    profile_set_frames(p, (uint32_t)i, &frame, 1, err) < 0)
			return -1;
	}
	return 0;
}

int profiling_open(const struct rundir *dir, struct profile *ret, struct warnings *warnings, struct error *err)
{
	struct error why;

	if (samples_read(dir->samples_seg, ret, err) < 0)
		return -1;
	note_damage(ret, warnings);
	if (profile_file_read(dir->profile_json, ret, &why) < 0)
		warnings_add(warnings, "The CPU profile has no names of functions: %s.", why.text);
	return name_places(ret, err);
}

int profiling_recover(const struct rundir *dir, struct run *run, struct error *err)
{
	if (!fs_exists(dir->samples_seg) && !fs_is_dir(dir->rings))
		return 0;
	if (sampling_recover(dir->rings, dir->samples_seg, &run->warnings, err) < 0)
		return -1;
	return profiling_finish(dir, NULL, NULL, run, err);
}
