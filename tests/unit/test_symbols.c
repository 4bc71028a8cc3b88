#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "need.h"
#include "plugin.h"
#include "scratch.h"
#include "symbol/fenced.h"
#include "symbol/jit_map.h"
#include "symbol/symbols.h"

/* Names against binutils in every layout: tests/cli/test_names.py. Here: what no file can show. */

static bool have_plugin;

static int find_plugin(void **state)
{
	(void)state;
	return plugin_find("assay-elf.so", symbols_available, &have_plugin);
}

static void need_plugin(void)
{
	need("elfutils", have_plugin, "assay-elf.so or its library is not there");
}

/* A profile of one module and one image, whose pid is the test's. */
static void begin(struct profile *p, struct profile_module *like)
{
	profile_init(p);
	assert_int_equal(profile_add_image(p, getpid(), 1, 0, "x", "x", NULL), 0);
	assert_int_equal(profile_add_module(p, like, NULL), 0);
}

static void ask(struct profile *p, uint64_t address)
{
	assert_true(profile_add_node(p, 0, 0, address, NULL) > 0);
}

static const char *name_at(const struct profile *p, size_t location)
{
	assert_true(p->locations[location].count > 0);
	return p->functions[p->frames[p->locations[location].first].function].name;
}

static void resolve(struct profile *p, const struct symbols_options *options, int expected)
{
	struct warnings warnings;
	struct error err;

	warnings_init(&warnings);
	assert_int_equal(symbols_resolve(p, options, &warnings, &err), expected);
	warnings_release(&warnings);
}

/* What a sink was told, as one text: "name@ADDRESS-INDEX ..." */
struct told {
	char names[64][32];
	size_t count;
	char text[4096], note[512];
	bool refused;
};

static int told_function(void *context, bool known, const char *name, const char *file, uint32_t line)
{
	struct told *t = context;

	(void)known, (void)file, (void)line;
	assert_true(t->count < 64);
	snprintf(t->names[t->count++], sizeof t->names[0], "%s", name);
	return 0;
}

static int told_frames(void *context, size_t at, const struct symbols_frame *frames, size_t count)
{
	struct told *t = context;
	size_t length = strlen(t->text);

	assert_int_equal(count, 1);
	assert_true(frames[0].function < t->count);
	snprintf(t->text + length, sizeof t->text - length, "%s@%zu ", t->names[frames[0].function], at);
	return 0;
}

static int told_note(void *context, bool refused, const char *text)
{
	struct told *t = context;

	t->refused = refused;
	snprintf(t->note, sizeof t->note, "%s", text);
	return 0;
}

static struct symbols_sink sink_of(struct told *t)
{
	return (struct symbols_sink){t, told_function, told_frames, told_note, NULL, NULL};
}

static void of_a_jit_map_the_last_entry_counts(void **state)
{
	static const char map[] =
		"1000 100 first\n0x1080 0x10 second one\n1000 20 third\nnonsense\n2000 10\n3000 0 empty\n"
		"ffffffffffffff00 ffff wide\n5000 100 cut";
	static const uint64_t addresses[] = {0xfff,  0x1000, 0x101f, 0x1020, 0x1080, 0x108f, 0x1090,
					     0x10ff, 0x1100, 0x2000, 0x3000, 0x5000, UINT64_MAX};
	struct told t = {0};
	struct symbols_sink sink = sink_of(&t);

	(void)state;
	assert_int_equal(
		jit_map_parse(map, sizeof map - 1, addresses, sizeof addresses / sizeof *addresses, &sink, NULL), 0);
	assert_string_equal(t.text, "wide@12 third@1 third@2 second one@4 second one@5 first@3 first@6 first@7 ");
}

static void a_jit_map_is_read_where_it_is_a_plain_file_of_this_user(void **state)
{
	struct profile_module like = {.kind = PROFILE_ANON, .path = (char *)""};
	struct symbols_options options = {.map_folder = scratch_dir};
	char path[512], other[512];
	static const char map[] = "4000 10 LazyCompile:~hot app.js:1\n";
	struct profile p;

	(void)state;
	snprintf(path, sizeof path, "%s/perf-%d.map", scratch_dir, getpid());
	snprintf(other, sizeof other, "%s/other", scratch_dir);
	for (int kind = 0; kind < 4; kind++) {
		unlink(path);
		if (kind == 0)
			assert_int_equal(fs_write_file(path, map, sizeof map - 1, NULL), 0);
		else if (kind == 1)
			assert_int_equal(mkfifo(path, 0600), 0);
		else if (kind == 2) {
			assert_int_equal(fs_write_file(other, map, sizeof map - 1, NULL), 0);
			assert_int_equal(symlink(other, path), 0);
		}
		begin(&p, &like);
		ask(&p, 0x4008);
		ask(&p, 0x4010);
		resolve(&p, &options, have_plugin ? 0 : -1);
		assert_string_equal(name_at(&p, 0), kind == 0 ? "LazyCompile:~hot app.js:1" : "[jit]!?");
		assert_string_equal(name_at(&p, 1), "[jit]!?");
		assert_int_equal(strncmp(p.modules[0].note, "No names: ", 10) == 0, kind != 0);
		profile_release(&p);
	}
}

static void a_hostile_jit_map_costs_its_length_and_no_more(void **state)
{
	enum { ENTRIES = 20000, ADDRESSES = 20000 };
	CLEANUP(buf_release) struct buf map;
	uint64_t *addresses = calloc(ADDRESSES, sizeof *addresses);
	struct profile_module like = {.kind = PROFILE_ANON, .path = (char *)""};
	struct symbols_options options = {.map_folder = scratch_dir};
	struct profile p;
	char path[512];

	(void)state;
	buf_init(&map);
	assert_non_null(addresses);
	for (int i = 0; i < ENTRIES; i++)
		buf_printf(&map, "0 ffffffffffffffff f%d\n", i);
	begin(&p, &like);
	for (uint64_t i = 0; i < ADDRESSES; i++)
		ask(&p, i * 7);
	snprintf(path, sizeof path, "%s/perf-%d.map", scratch_dir, getpid());
	assert_int_equal(fs_write_file(path, map.text, map.length, NULL), 0);
	resolve(&p, &options, have_plugin ? 0 : -1);
	for (size_t i = 0; i < p.location_count; i++)
		assert_string_equal(name_at(&p, i), "f19999");
	assert_int_equal(p.function_count, 1);
	profile_release(&p);
	free(addresses);
}

static int lent;

static int lend(void *context, uint32_t module)
{
	(void)context, (void)module;
	return lent;
}

static void a_deleted_file_gives_names_through_the_descriptor_that_was_kept(void **state)
{
	struct symbols_options options = {.module_fd = lend};
	struct profile_module like = {.kind = PROFILE_FILE};
	CLEANUP(buf_release) struct buf copy;
	struct profile p;
	struct stat st;
	Dl_info own;
	char path[512];

	(void)state;
	need_plugin();
	buf_init(&copy);
	assert_int_equal(fs_read_file("/proc/self/exe", (size_t)256 << 20, &copy, NULL), 0);
	snprintf(path, sizeof path, "%s/copy", scratch_dir);
	assert_int_equal(fs_write_file(path, copy.text, copy.length, NULL), 0);
	lent = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(lent >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(fstat(lent, &st), 0);
	assert_true(dladdr((void *)find_plugin, &own));
	like.path = path;
	like.device = st.st_dev;
	like.inode = st.st_ino;
	like.size = (uint64_t)st.st_size;
	like.mtime_ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
	begin(&p, &like);
	ask(&p, (uint64_t)((uintptr_t)find_plugin - (uintptr_t)own.dli_fbase));
	resolve(&p, &options, 0);
	assert_string_equal(name_at(&p, 0), "find_plugin");
	profile_release(&p);

	like.mtime_ns++;
	begin(&p, &like);
	ask(&p, (uint64_t)((uintptr_t)find_plugin - (uintptr_t)own.dli_fbase));
	resolve(&p, &options, 0);
	assert_string_equal(name_at(&p, 0), "copy!?");
	assert_non_null(strstr(p.modules[0].note, "changed since the run"));
	profile_release(&p);
	close(lent);
}

static void places_that_nothing_is_known_of_say_so(void **state)
{
	static const struct {
		enum profile_module_kind kind;
		const char *path, *name;
	} cases[] = {
		{PROFILE_UNKNOWN, "", "[unknown]!?"},
		{PROFILE_ANON, "", "[jit]!?"},
		{PROFILE_VDSO, "linux-vdso.so.1", "[vdso]!?"},
		{PROFILE_FILE, "/nowhere/libgone.so", "libgone.so!?"},
		{PROFILE_FILE, "/dev/zero", "zero!?"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct profile_module like = {.kind = cases[i].kind, .path = (char *)cases[i].path};
		struct symbols_options options = {.map_folder = scratch_dir};
		struct profile p;

		begin(&p, &like);
		ask(&p, 0x1234);
		resolve(&p, &options, have_plugin ? 0 : -1);
		assert_string_equal(name_at(&p, 0), cases[i].name);
		assert_false(p.functions[0].known);
		profile_release(&p);
	}
}

/* The build-id in the vdso's note, read by hand. */
static size_t vdso_build_id(uint8_t *ret, size_t room)
{
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);

	for (size_t i = 0; image && i < 4000; i += 4) {
		uint32_t sizes[3];

		memcpy(sizes, image + i, sizeof sizes);
		if (sizes[0] == 4 && sizes[2] == 3 && memcmp(image + i + 12, "GNU", 4) == 0 && sizes[1] <= room) {
			memcpy(ret, image + i + 16, sizes[1]);
			return sizes[1];
		}
	}
	return 0;
}

static void the_vdso_is_named_where_its_build_id_is_ours(void **state)
{
	const uintptr_t base = getauxval(AT_SYSINFO_EHDR);
	struct profile_module like = {.kind = PROFILE_VDSO, .path = (char *)"linux-vdso.so.1"};
	struct symbols_options options = {0};
	void *library = dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD);
	void *function = library ? dlsym(library, "__vdso_clock_gettime") : NULL;
	struct profile p;

	(void)state;
	need_plugin();
	like.build_id_length = vdso_build_id(like.build_id, sizeof like.build_id);
	need("vdso", function && like.build_id_length, "this machine gives processes none");
	for (int other = 0; other < 2; other++) {
		like.build_id[0] = (uint8_t)(like.build_id[0] + other);
		begin(&p, &like);
		ask(&p, (uintptr_t)function - base);
		resolve(&p, &options, 0);
		if (other)
			assert_string_equal(name_at(&p, 0), "[vdso]!?");
		else
			assert_non_null(strstr(name_at(&p, 0), "clock_gettime"));
		profile_release(&p);
	}
	dlclose(library);
}

/* Plug-ins that misbehave. */
static int crash(const struct symbols_request *r, const struct symbols_sink *sink, struct error *err)
{
	(void)r, (void)sink, (void)err;
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
	return 0;
}

static int tell_and_crash(const struct symbols_request *r, const struct symbols_sink *sink, struct error *err)
{
	const struct symbols_frame frame = {0};

	sink->function(sink->context, true, "seen", NULL, 0);
	sink->frames(sink->context, 0, &frame, 1);
	return crash(r, sink, err);
}

static int hoard(const struct symbols_request *r, const struct symbols_sink *sink, struct error *err)
{
	(void)r, (void)sink;
	for (int i = 0; i < 1 << 20; i++) {
		char *part = malloc(1 << 20);

		if (!part)
			return error_set(err, "out of memory");
		memset(part, 1, 4096);
	}
	return 0;
}

static int lie(const struct symbols_request *r, const struct symbols_sink *sink, struct error *err)
{
	const struct symbols_frame frame = {.function = 7};

	(void)r, (void)err;
	sink->function(sink->context, true, "one", NULL, 0);
	sink->frames(sink->context, 5, &frame, 1);
	return sink->done(sink->context);
}

static int tell_end_and_crash(const struct symbols_request *r, const struct symbols_sink *sink, struct error *err)
{
	const struct symbols_frame frame = {0};

	sink->function(sink->context, true, "seen", NULL, 0);
	sink->frames(sink->context, 0, &frame, 1);
	sink->done(sink->context);
	return crash(r, sink, err);
}

static int end_without_a_word(const struct symbols_request *r, const struct symbols_sink *sink, struct error *err)
{
	(void)r, (void)sink, (void)err;
	return 0;
}

static int tell_and_wait(const struct symbols_request *r, const struct symbols_sink *sink, struct error *err)
{
	(void)r, (void)sink, (void)err;
	while (pause() < 0)
		;
	return 0;
}

static enum fenced fence(int (*resolve_it)(const struct symbols_request *, const struct symbols_sink *, struct error *),
			 struct told *t, const volatile int *hurry, struct error *err)
{
	const struct symbols_plugin plugin = {.version = SYMBOLS_PLUGIN_VERSION, .resolve = resolve_it};
	const uint64_t addresses[] = {1, 2};
	const struct symbols_request request = {.fd = -1, .path = "/dev/null", .addresses = addresses, .count = 2};
	struct symbols_sink sink = sink_of(t);

	return fenced_resolve(&plugin, &request, &sink, hurry, err);
}

static void a_reader_that_crashes_hoards_or_lies_ends_alone(void **state)
{
	struct told t = {0};
	struct error err;

	(void)state;
	assert_int_equal(fence(crash, &t, NULL, &err), FENCED_BROKE);
	assert_non_null(strstr(err.text, "Segmentation fault"));
	assert_int_equal(fence(tell_and_crash, &t, NULL, &err), FENCED_BROKE);
	assert_string_equal(t.text, "");
	assert_int_equal(fence(hoard, &t, NULL, &err), FENCED_BROKE);
	assert_int_equal(fence(lie, &t, NULL, &err), FENCED_BROKE);
	assert_string_equal(t.text, "");
}

static void only_a_reader_that_says_so_is_done(void **state)
{
	struct told t = {0};
	struct error err;

	(void)state;
	assert_int_equal(fence(end_without_a_word, &t, NULL, &err), FENCED_BROKE);
	assert_int_equal(fence(tell_end_and_crash, &t, NULL, &err), FENCED_DONE);
}

static void a_hurry_ends_the_reader(void **state)
{
	volatile int hurry = 1;
	struct told t = {0};
	struct error err;

	(void)state;
	assert_int_equal(fence(tell_and_wait, &t, &hurry, &err), FENCED_STOPPED);
}

static void what_is_left_in_a_hurry_has_places(void **state)
{
	volatile int hurry = 1;
	struct symbols_options options = {.hurry = &hurry};
	struct profile_module like = {.kind = PROFILE_FILE, .path = (char *)"/proc/self/exe"};
	struct profile p;

	(void)state;
	begin(&p, &like);
	ask(&p, 0x1234);
	resolve(&p, &options, have_plugin ? 0 : -1);
	assert_string_equal(name_at(&p, 0), "exe!?");
	profile_release(&p);
}

static void mangled_names_become_readable_and_bombs_stay_as_they_are(void **state)
{
	static const struct {
		const char *mangled, *readable;
	} cases[] = {
		{"main", NULL},
		{"_start", NULL},
		{"_Z4worki", "work(int)"},
		{"_ZN5outer5inner3BoxIlE3getEl", "outer::inner::Box<long>::get(long)"},
		{"_Z4worki.constprop.0", "work(int) [clone .constprop.0]"},
		{"_ZN4main3hot17h0123456789abcdefE", "main::hot"},
		{"_RNvCs9ltgdHTiPiY_4main3hot", "main::hot"},
		{"_Z", NULL},
		{"_R", NULL},
	};
	char bomb[2000] = "_Z1f";
	size_t at = strlen(bomb);
	char *readable;

	(void)state;
	need_plugin();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *got = symbols_demangle(cases[i].mangled);

		if (cases[i].readable)
			assert_string_equal(got, cases[i].readable);
		else
			assert_null(got);
		free(got);
	}
	/* A type made of two of the type before it, 36 times over. */
	at += (size_t)snprintf(bomb + at, sizeof bomb - at, "1aIiiE");
	for (const char *c = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"; *c; c++)
		at += (size_t)snprintf(bomb + at, sizeof bomb - at, "S_IS%c_S%c_E", *c, *c);
	assert_null(symbols_demangle(bomb));
	/* The same, short enough to be shown. */
	bomb[strlen("_Z1f1aIiiE") + strlen("S_IS0_S0_E")] = '\0';
	readable = symbols_demangle(bomb);
	assert_string_equal(readable, "f(a<int, int>, a<a<int, int>, a<int, int> >)");
	free(readable);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_a_jit_map_the_last_entry_counts),
		cmocka_unit_test_setup_teardown(a_jit_map_is_read_where_it_is_a_plain_file_of_this_user, scratch_make,
						scratch_remove),
		cmocka_unit_test_setup_teardown(a_hostile_jit_map_costs_its_length_and_no_more, scratch_make,
						scratch_remove),
		cmocka_unit_test_setup_teardown(a_deleted_file_gives_names_through_the_descriptor_that_was_kept,
						scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(places_that_nothing_is_known_of_say_so, scratch_make, scratch_remove),
		cmocka_unit_test(the_vdso_is_named_where_its_build_id_is_ours),
		cmocka_unit_test(a_reader_that_crashes_hoards_or_lies_ends_alone),
		cmocka_unit_test(only_a_reader_that_says_so_is_done),
		cmocka_unit_test(a_hurry_ends_the_reader),
		cmocka_unit_test(what_is_left_in_a_hurry_has_places),
		cmocka_unit_test(mangled_names_become_readable_and_bombs_stay_as_they_are),
	};
	return cmocka_run_group_tests(tests, find_plugin, NULL);
}
