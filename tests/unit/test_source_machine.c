#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <unistd.h>

#include "need.h"
#include "sources.h"

#define SECOND INT64_C(1000000000)

static void start(struct stage *s, const struct source *source)
{
	stage_init(s, 0);
	stage_open(s, source);
}

static void link_disk(const char *name, const char *target)
{
	char from[512], to[512];

	snprintf(from, sizeof from, "%s/sys/block/%s", scratch_dir, name);
	snprintf(to, sizeof to, "%s/sys/%s", scratch_dir, target);
	assert_int_equal(symlink(to, from), 0);
}

static void make_disks(void)
{
	make_file("sys/block/.keep", "");
	make_file("sys/devices/pci/ata1/block/sda/queue/rotational", "1\n");
	make_file("sys/devices/pci/nvme/nvme0n1/queue/rotational", "0\n");
	make_file("sys/devices/pci/virtio2/block/vda/queue/rotational", "1\n");
	make_file("sys/devices/virtual/block/dm-0/queue/rotational", "0\n");
	make_file("sys/devices/virtual/block/loop0/queue/rotational", "0\n");
	make_file("sys/devices/pci/cciss/queue/rotational", "1\n");
	make_file("sys/devices/pci/ata2/block/sdb/queue/rotational", "0\n");
	make_file("sys/devices/pci/ata2/block/sdb/device/model", "QEMU HARDDISK   \n");
	link_disk("sda", "devices/pci/ata1/block/sda");
	link_disk("nvme0n1", "devices/pci/nvme/nvme0n1");
	link_disk("vda", "devices/pci/virtio2/block/vda");
	link_disk("dm-0", "devices/virtual/block/dm-0");
	link_disk("loop0", "devices/virtual/block/loop0");
	link_disk("cciss!c0d0", "devices/pci/cciss");
	link_disk("sdb", "devices/pci/ata2/block/sdb");
}

static void whole_disks_are_shown_with_their_kind(void **state)
{
	struct stage s;

	(void)state;
	make_disks();
	make_file("proc/diskstats", "   7       0 loop0 9 9 9 9 9 9 9 9 9 9 9\n"
				    "   8       0 sda 10 1 16 5 20 2 32 6 0 1500 11 0 0 0 0 0 0\n"
				    "   8       1 sda1 1 1 1 1 1 1 1 1 1 1 1\n"
				    " 259       0 nvme0n1 1 0 2 0 3 0 4 0 0 5 0\n"
				    " 254       0 vda 1 0 2 0 3 0 4 0 0 5 0\n"
				    " 253       0 dm-0 1 0 2 0 3 0 4 0 0 5 0\n"
				    " 104       0 cciss/c0d0 7 0 2 0 3 0 4 0 0 5 0\n"
				    "   8      16 sdb 1 0 2 0 3 0 4 0 0 5 0\n");
	start(&s, &source_disk);
	stage_slow(&s, SECOND);
	assert_last("disk.sda.reads", 10);
	assert_last("disk.sda.read_bytes", 16 * 512);
	assert_last("disk.sda.writes", 20);
	assert_last("disk.sda.write_bytes", 32 * 512);
	assert_last("disk.sda.busy", 1.5);
	assert_last("disk.cciss!c0d0.reads", 7);
	assert_string_equal(series_of("disk.sda.busy")->scope, "disk sda hdd");
	assert_string_equal(series_of("disk.nvme0n1.busy")->scope, "disk nvme0n1 ssd");
	assert_string_equal(series_of("disk.vda.busy")->scope, "disk vda virtual");
	assert_string_equal(series_of("disk.dm-0.busy")->scope, "disk dm-0 virtual");
	assert_string_equal(series_of("disk.sdb.busy")->scope, "disk sdb virtual");
	assert_null(series_of("disk.loop0.busy"));
	assert_null(series_of("disk.sda1.busy"));
	stage_release(&s);
}

static void a_disk_that_comes_later_is_shown_and_damaged_lines_are_not(void **state)
{
	struct stage s;
	char *long_line = malloc(100000);

	(void)state;
	assert_non_null(long_line);
	make_disks();
	make_file("proc/diskstats", "   8       0 sda 10 1 16 5 20 2 32 6 0 1500 11\n");
	start(&s, &source_disk);
	stage_slow(&s, SECOND);
	make_file("proc/diskstats", "\n  \n 259 nvme0n1\n 259 0\n 259 0 nvme0n1 x\n 254 0 vda 1 0 2 0 3 0 4 0 0 5 0\n"
				    " 8 0 sda 11 1 16 5 20 2 32 6 0 1500 11\n 8 16 sdb 1 0 2");
	stage_slow(&s, 100 * SECOND);
	assert_last("disk.sda.reads", 11);
	assert_last("disk.vda.reads", 1);
	assert_null(series_of("disk.sdb.reads"));
	assert_true(isnan(last_of("disk.nvme0n1.reads")));
	memset(long_line, 'x', 99999);
	long_line[99999] = '\0';
	make_file("proc/diskstats", long_line);
	stage_slow(&s, 200 * SECOND);
	assert_last("disk.sda.reads", 11);
	free(long_line);
	stage_release(&s);
}

static void pressure_totals_are_seconds(void **state)
{
	struct stage s;

	(void)state;
	make_file("proc/pressure/cpu", "some avg10=1.83 avg60=0.94 avg300=0.23 total=3873402\n"
				       "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
	make_file("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=2000000\n"
					  "full avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n");
	make_file("proc/pressure/io", "garbage total=\nsome total=x\nsome");
	start(&s, &source_pressure);
	stage_slow(&s, SECOND);
	assert_last("pressure.cpu.some", 3.873402);
	assert_last("pressure.memory.some", 2);
	assert_last("pressure.memory.full", 1);
	assert_null(series_of("pressure.cpu.full"));
	assert_null(series_of("pressure.io.some"));
	stage_release(&s);
}

static void without_pressure_files_it_says_what_grants_them(void **state)
{
	struct stage s;
	struct error why;
	void *unused;

	(void)state;
	stage_init(&s, 0);
	assert_int_equal(source_pressure.open(&s.context, &unused, &why), -1);
	assert_non_null(strstr(why.text, "psi=1"));
	make_file("proc/pressure/cpu", "");
	assert_int_equal(source_pressure.open(&s.context, &unused, &why), -1);
	stage_release(&s);
}

static void machine_figures_are_in_seconds_and_bytes(void **state)
{
	struct stage s;
	double page = (double)sysconf(_SC_PAGESIZE), tick = 1.0 / (double)sysconf(_SC_CLK_TCK);

	(void)state;
	make_file("proc/loadavg", "12.34 1.00 0.50 3/99 1234\n");
	make_file("proc/meminfo",
		  "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable:   50 kB\nSwapTotal: 40 kB\nSwapFree: 30 kB\n");
	make_file("proc/vmstat",
		  "nr_free_pages 1\nworkingset_refault_anon 3\nworkingset_refault_file 4\npswpin 5\npswpout 6\n"
		  "pgmajfault 7\n");
	make_file("proc/stat", "cpu  10 20 30 999 888 1 2 50 7 7\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
	make_file("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2400000\n");
	start(&s, &source_machine);
	stage_slow(&s, SECOND);
	assert_last("machine.load1", 12.34);
	assert_last("machine.memory.available", 50 * 1024);
	assert_last("machine.swap.used", 10 * 1024);
	assert_last("machine.refaults.anon", 3 * page);
	assert_last("machine.refaults.file", 4 * page);
	assert_last("machine.swap.in", 5 * page);
	assert_last("machine.swap.out", 6 * page);
	assert_last("machine.faults.major", 7);
	assert_last("machine.cpu.busy", 63 * tick);
	assert_last("machine.cpu.steal", 50 * tick);
	assert_last("machine.frequency", 2.4e9);
	stage_release(&s);
}

static void an_old_kernels_refaults_are_those_of_files(void **state)
{
	struct stage s;

	(void)state;
	make_file("proc/vmstat", "workingset_refault 4\n");
	start(&s, &source_machine);
	stage_slow(&s, SECOND);
	assert_last("machine.refaults.file", 4 * (double)sysconf(_SC_PAGESIZE));
	assert_true(isnan(last_of("machine.refaults.anon")));
	assert_true(isnan(last_of("machine.load1")));
	stage_release(&s);
}

static void damaged_machine_files_give_no_points(void **state)
{
	struct stage s;

	(void)state;
	make_file("proc/loadavg", "12");
	make_file("proc/meminfo", "MemAvailable: kB\nSwapTotal: 99999999999999999999999 kB\n");
	make_file("proc/vmstat", "pswpin\npswpout -5\n\n\n pgmajfault 1");
	make_file("proc/stat", "cpu  10 20 30");
	start(&s, &source_machine);
	stage_slow(&s, SECOND);
	for (size_t i = 0; i < shown_count; i++)
		if (shown[i].points)
			fail_msg("%s has a point", shown[i].name);
	stage_release(&s);
}

static void the_real_files_of_this_machine_give_points(void **state)
{
	static const char *const names[] = {"machine.load1", "machine.memory.available", "machine.cpu.busy",
					    "machine.faults.major"};
	struct stage s;

	(void)state;
	procfs_set_roots(NULL, NULL);
	start(&s, &source_machine);
	stage_open(&s, &source_disk);
	stage_slow(&s, SECOND);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!(last_of(names[i]) >= 0))
			fail_msg("%s has no point", names[i]);
	stage_release(&s);
}

static void pressure_of_this_machine_never_goes_down(void **state)
{
	struct stage s;
	struct error why;
	void *opened;

	(void)state;
	procfs_set_roots(NULL, NULL);
	stage_init(&s, 0);
	need("psi", source_pressure.open(&s.context, &opened, &why) == 0, "%s", why.text);
	for (int i = 0; i < 100; i++) {
		/* The sink checks that no counter goes down. */
		source_pressure.slow(opened, &s.context, i);
		timeline_flush(&s.timeline, i);
	}
	assert_true(last_of("pressure.cpu.some") >= 0);
	source_pressure.close(opened);
	stage_release(&s);
}

#define FAKE(test) cmocka_unit_test_setup_teardown(test, fake_roots, real_roots)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAKE(whole_disks_are_shown_with_their_kind),
		FAKE(a_disk_that_comes_later_is_shown_and_damaged_lines_are_not),
		FAKE(pressure_totals_are_seconds),
		FAKE(without_pressure_files_it_says_what_grants_them),
		FAKE(machine_figures_are_in_seconds_and_bytes),
		FAKE(an_old_kernels_refaults_are_those_of_files),
		FAKE(damaged_machine_files_give_no_points),
		FAKE(the_real_files_of_this_machine_give_points),
		FAKE(pressure_of_this_machine_never_goes_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
