#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "made_rings.h"
#include "record/module_files.h"
#include "record/ring_finder.h"
#include "record/ring_folder.h"
#include "scratch.h"

/* A 64-bit ELF file with nothing but a note, that of its build-id. */
static void put_elf(const char *path, uint8_t id)
{
	struct {
		Elf64_Ehdr head;
		Elf64_Phdr segment;
		Elf64_Nhdr note;
		char name[4];
		uint8_t id[20];
	} file = {
		.head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
			 .e_phoff = sizeof file.head,
			 .e_phentsize = sizeof file.segment,
			 .e_phnum = 1},
		.segment = {.p_type = PT_NOTE, .p_offset = sizeof file.head + sizeof file.segment, .p_align = 4},
		.note = {4, 20, NT_GNU_BUILD_ID},
		.name = "GNU",
	};
	struct error err;

	file.segment.p_filesz = sizeof file - file.segment.p_offset;
	memset(file.id, id, sizeof file.id);
	assert_int_equal(fs_write_file(path, (const char *)&file, sizeof file, &err), 0);
}

static bool opens(const struct module_seen *seen)
{
	int fd = module_files_open(seen);

	if (fd < 0) {
		assert_int_equal(fd, -ESTALE);
		return false;
	}
	close(fd);
	return true;
}

/* This process runs another program than the ring's, as one does that has gone on by exec. */
static void a_module_is_the_file_of_its_build_id_or_none(void **state)
{
	const char *path = scratch_path("program");
	uint8_t id[20];
	struct module_seen seen = {
		.pid = (int)getpid(), .path = path, .program = true, .build_id = id, .build_id_length = sizeof id};

	(void)state;
	put_elf(path, 7);
	memset(id, 7, sizeof id);
	assert_true(opens(&seen));
	seen.pid = 0;
	assert_true(opens(&seen));
	memset(id, 8, sizeof id);
	assert_false(opens(&seen));
	seen.pid = (int)getpid();
	assert_false(opens(&seen));
}

static void a_file_without_build_id_must_be_shown_to_be_the_one(void **state)
{
	const char *path = scratch_path("program"), *witness = scratch_path("9-9.ring");
	struct module_seen seen = {.pid = (int)getpid(), .path = path, .program = true, .witness = "9-9.ring"};
	struct made_ring r;
	struct stat st;

	(void)state;
	put_elf(path, 7);
	assert_int_equal(stat(path, &st), 0);
	/* Nothing tells that it was there when the program began, or it came later. */
	assert_false(opens(&seen));
	seen.since = clock_mono_ns() - NS_PER_S;
	assert_false(opens(&seen));
	seen.since = clock_mono_ns() + NS_PER_S;
	assert_true(opens(&seen));
	seen.since = 0;
	seen.inode = st.st_ino;
	assert_true(opens(&seen));
	seen.inode++;
	assert_false(opens(&seen));
	/* What maps the ring is the program that made it. */
	seen.inode = 0;
	r = made_ring_new(witness, (int)getpid(), 5);
	assert_true(opens(&seen));
	made_ring_free(&r);
	assert_false(opens(&seen));
}

static void put_names(int from, int to)
{
	for (int i = from; i < to; i++) {
		char name[64];
		struct error err;

		snprintf(name, sizeof name, "rings/%d.ring", i);
		assert_int_equal(fs_write_file(scratch_path(name), "", 0, &err), 0);
	}
}

static void files_are_told_once_each_and_again_when_they_were_put_off(void **state)
{
	const char *folder = scratch_path("rings"), *path;
	struct ring_finder *f = NULL;
	struct error err = {""};

	(void)state;
	assert_int_equal(mkdir(folder, 0777), 0);
	assert_int_equal(ring_finder_new(folder, folder, &f, &err), 0);
	put_names(1, 3);
	ring_finder_look(f, INT64_MAX);
	ring_finder_look(f, INT64_MAX);
	path = ring_finder_next(f, 100);
	assert_string_equal(path, scratch_path("rings/1.ring"));
	ring_finder_defer(f, path, 200);
	/* New ones do not wait for one that was put off. */
	put_names(3, 4);
	ring_finder_look(f, INT64_MAX);
	assert_string_equal(ring_finder_next(f, 100), scratch_path("rings/2.ring"));
	assert_int_equal(ring_finder_unread(f), 1);
	path = ring_finder_next(f, 100);
	assert_string_equal(path, scratch_path("rings/3.ring"));
	ring_finder_discard(f, path);
	assert_false(fs_exists(scratch_path("rings/3.ring")));
	assert_null(ring_finder_next(f, 199));
	assert_string_equal(ring_finder_next(f, 200), scratch_path("rings/1.ring"));
	assert_null(ring_finder_next(f, INT64_MAX));
	assert_int_equal(ring_finder_unread(f), 0);
	ring_finder_free(f);
}

static void more_files_than_are_kept_are_counted(void **state)
{
	struct ring_finder *f = NULL;
	struct error err = {""};
	size_t told = 0;

	(void)state;
	assert_int_equal(mkdir(scratch_path("rings"), 0777), 0);
	put_names(0, RING_FILES_MAX + 10);
	assert_int_equal(ring_finder_new(scratch_path("rings"), scratch_path("rings"), &f, &err), 0);
	put_names(RING_FILES_MAX + 10, RING_FILES_MAX + 20);
	/* Of these alone the news came in time. */
	ring_finder_look(f, INT64_MAX);
	while (ring_finder_next(f, INT64_MAX))
		told++;
	assert_int_equal(told, 10);
	assert_int_equal(ring_finder_unread(f), RING_FILES_MAX + 10);
	ring_finder_free(f);
	ring_folder_clear(scratch_path("rings"));
	assert_int_equal(rmdir(scratch_path("rings")), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_module_is_the_file_of_its_build_id_or_none),
		TEST(a_file_without_build_id_must_be_shown_to_be_the_one),
		TEST(files_are_told_once_each_and_again_when_they_were_put_off),
		TEST(more_files_than_are_kept_are_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
