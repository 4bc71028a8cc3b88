#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "need.h"
#include "sources.h"

#define SECOND INT64_C(1000000000)
#define COMMAND 4194306
#define HEAD                                                                                                           \
	"Inter-|   Receive                                                |  Transmit\n"                               \
	" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n"
#define LINE(name, received, sent) name " " #received " 1 0 0 0 0 0 0 " #sent " 1 0 0 0 0 0 0\n"

static void make_command(const char *lines)
{
	char path[64], text[8192];

	snprintf(path, sizeof path, "proc/%d/net/dev", COMMAND);
	snprintf(text, sizeof text, HEAD "%s", lines);
	make_file(path, text);
}

/* Another file of that name, as another namespace has. */
static void make_command_elsewhere(const char *lines)
{
	char path[64], from[512], to[512];

	snprintf(path, sizeof path, "proc/%d/net/old", COMMAND);
	make_file(path, "");
	snprintf(to, sizeof to, "%s/proc/%d/net/dev", scratch_dir, COMMAND);
	snprintf(from, sizeof from, "%s/proc/%d/net/old", scratch_dir, COMMAND);
	assert_int_equal(rename(to, from), 0);
	make_command(lines);
}

/* The command is in this process's namespace. */
static void share(void)
{
	char from[512], to[512];

	make_file("proc/self/net/.keep", "");
	snprintf(from, sizeof from, "%s/proc/%d/net/dev", scratch_dir, COMMAND);
	snprintf(to, sizeof to, "%s/proc/self/net/dev", scratch_dir);
	assert_int_equal(link(from, to), 0);
}

static void start(struct stage *s, pid_t command)
{
	stage_init(s, command);
	stage_open(s, &source_network);
	/* The pace must not decide here. */
	s->context.exact = true;
	stage_slow(s, SECOND);
}

static void an_interface_is_shown_once_it_has_traffic(void **state)
{
	struct stage s;

	(void)state;
	make_command(LINE("    lo:", 7, 7) LINE("  eth0:", 100, 50) LINE("docker0:", 9000, 9000));
	start(&s, COMMAND);
	assert_int_equal(shown_count, 0);
	make_command(LINE("    lo:", 8, 8) LINE("  eth0:", 300, 50) LINE("docker0:", 9000, 9000));
	stage_slow(&s, 2 * SECOND);
	/* What there was before, so that the difference holds all that came. */
	assert_last("net.eth0.rx_bytes", 100);
	assert_last("net.eth0.tx_bytes", 50);
	stage_slow(&s, 3 * SECOND);
	assert_last("net.eth0.rx_bytes", 300);
	assert_int_equal(shown_count, 2);
	assert_string_equal(series_of("net.eth0.rx_bytes")->scope, "network eth0");
	assert_string_equal(series_of("net.eth0.rx_bytes")->unit, "bytes");
	assert_int_equal(series_of("net.eth0.tx_bytes")->kind, SERIES_COUNTER);
	stage_release(&s);
}

static void an_interface_that_is_made_later_counts_from_nothing(void **state)
{
	struct stage s;

	(void)state;
	make_command(LINE("  eth0:", 100, 50));
	start(&s, COMMAND);
	make_command(LINE("  tun0:", 10, 4) LINE("  eth0:", 100, 50));
	stage_slow(&s, 2 * SECOND);
	assert_last("net.tun0.rx_bytes", 0);
	stage_slow(&s, 3 * SECOND);
	assert_last("net.tun0.rx_bytes", 10);
	assert_last("net.tun0.tx_bytes", 4);
	/* It goes and comes again, with its counters anew. */
	make_command(LINE("  eth0:", 100, 50));
	stage_slow(&s, 4 * SECOND);
	make_command(LINE("  tun0:", 3, 4) LINE("  eth0:", 100, 50));
	stage_slow(&s, 5 * SECOND);
	make_command(LINE("  tun0:", 5, 5) LINE("  eth0:", 100, 50));
	stage_slow(&s, 6 * SECOND);
	assert_last("net.tun0.rx_bytes", 12);
	assert_last("net.tun0.tx_bytes", 5);
	assert_int_equal(shown_count, 2);
	stage_release(&s);
}

static void in_another_namespace_the_counters_go_on(void **state)
{
	struct stage s;

	(void)state;
	make_command(LINE("  eth0:", 100, 50) LINE("  eth1:", 1, 1));
	start(&s, COMMAND);
	make_command(LINE("  eth0:", 200, 50) LINE("  eth1:", 1, 1));
	stage_slow(&s, 2 * SECOND);
	stage_slow(&s, 3 * SECOND);
	make_command_elsewhere(LINE("  eth1:", 70, 70) LINE("  eth0:", 100000, 9));
	stage_slow(&s, 4 * SECOND);
	assert_last("net.eth0.rx_bytes", 200);
	assert_last("net.eth0.tx_bytes", 50);
	/* What that one had before is not this run's. */
	assert_null(series_of("net.eth1.rx_bytes"));
	make_command(LINE("  eth1:", 70, 70) LINE("  eth0:", 100030, 10));
	stage_slow(&s, 5 * SECOND);
	assert_last("net.eth0.rx_bytes", 230);
	assert_last("net.eth0.tx_bytes", 51);
	stage_release(&s);
}

static void the_speed_is_in_bytes_per_second_where_sys_shows_the_same_interfaces(void **state)
{
	struct stage s;

	(void)state;
	make_file("sys/class/net/eth0/speed", "1000\n");
	make_file("sys/class/net/eth1/speed", "-1\n");
	make_file("sys/class/net/eth2/speed", "4294967295\n");
	make_command(LINE("eth0:", 1, 1) LINE("eth1:", 1, 1) LINE("eth2:", 1, 1) LINE("eth3:", 1, 1));
	share();
	start(&s, COMMAND);
	make_command(LINE("eth0:", 2, 1) LINE("eth1:", 2, 1) LINE("eth2:", 2, 1) LINE("eth3:", 2, 1));
	stage_slow(&s, 2 * SECOND);
	assert_last("net.eth0.speed", 125e6);
	assert_string_equal(series_of("net.eth0.speed")->unit, "bytes/s");
	assert_null(series_of("net.eth1.speed"));
	assert_null(series_of("net.eth2.speed"));
	assert_null(series_of("net.eth3.speed"));
	make_file("sys/class/net/eth0/speed", "100\n");
	stage_slow(&s, 3 * SECOND);
	assert_last("net.eth0.speed", 125e6);
	stage_slow(&s, 20 * SECOND);
	assert_last("net.eth0.speed", 12.5e6);
	stage_release(&s);
	/* Of another namespace, /sys says nothing. */
	make_command_elsewhere(LINE("eth0:", 1, 1));
	start(&s, COMMAND);
	make_command(LINE("eth0:", 2, 1));
	stage_slow(&s, 2 * SECOND);
	assert_non_null(series_of("net.eth0.rx_bytes"));
	assert_null(series_of("net.eth0.speed"));
	stage_release(&s);
}

static void odd_and_hostile_names_give_series_of_their_own(void **state)
{
	struct stage s;

	(void)state;
	make_command("");
	start(&s, COMMAND);
	make_command(LINE("eth0:", 11, 1) LINE("eth0:1:", 12, 1) LINE("  eth0.100:", 13, 1)
			     LINE("r\xc3\xa9seau:", 14, 1) LINE("\x1b[31m\"':", 15, 1) LINE("\\x1b[31m\"':", 16, 1)
		     /* Stuck to the colon, as old kernels print it. */
		     "wlan0:123456789 1 0 0 0 0 0 0 77 1 0 0\n");
	stage_slow(&s, 2 * SECOND);
	stage_slow(&s, 3 * SECOND);
	assert_last("net.eth0.rx_bytes", 11);
	assert_last("net.eth0:1.rx_bytes", 12);
	assert_last("net.eth0.100.rx_bytes", 13);
	assert_last("net.r\\xc3\\xa9seau.rx_bytes", 14);
	assert_last("net.\\x1b[31m\"'.rx_bytes", 15);
	assert_last("net.\\x5cx1b[31m\"'.rx_bytes", 16);
	assert_last("net.wlan0.rx_bytes", 123456789);
	assert_last("net.wlan0.tx_bytes", 77);
	assert_int_equal(shown_count, 14);
	stage_release(&s);
}

static void damaged_lines_give_nothing(void **state)
{
	char *long_line = malloc(400000), path[64];
	struct stage s;

	(void)state;
	assert_non_null(long_line);
	make_command("");
	start(&s, COMMAND);
	make_command("\n:\n   :\n: 1 2 3\neth0:\neth0: 1 2 3\neth0: -1 1 1 1 1 1 1 1 1 1\nabcdefghijklmnop: 1 1 1 1 1 "
		     "1 1 1 1 1\n"
		     "../../etc: 1 1 1 1 1 1 1 1 1 1\na b: 1 1 1 1 1 1 1 1 1 1\n"
		     "eth0: 99999999999999999999999 1 1 1 1 1 1 1 1 1\neth0: 5 1 0 0 0 0 0 0 6 1");
	stage_slow(&s, 2 * SECOND);
	stage_slow(&s, 3 * SECOND);
	assert_int_equal(shown_count, 0);
	snprintf(path, sizeof path, "proc/%d/net/dev", COMMAND);
	memset(long_line, ':', 399999);
	long_line[399999] = '\0';
	make_file(path, long_line);
	free(long_line);
	stage_slow(&s, 4 * SECOND);
	make_file(path, "");
	stage_slow(&s, 5 * SECOND);
	assert_int_equal(shown_count, 0);
	stage_release(&s);
}

static void at_most_sixteen_interfaces_are_shown(void **state)
{
	char path[64], *text = malloc(400000);
	struct stage s;

	(void)state;
	assert_non_null(text);
	make_command("");
	start(&s, COMMAND);
	snprintf(path, sizeof path, "proc/%d/net/dev", COMMAND);
	for (int i = 0, length = 0; i < 3000; i++)
		length += snprintf(text + length, 400000 - (size_t)length, "veth%d: %d 1 0 0 0 0 0 0 1 1\n", i, i + 1);
	make_file(path, text);
	free(text);
	stage_slow(&s, 2 * SECOND);
	stage_slow(&s, 3 * SECOND);
	assert_int_equal(shown_count, 2 * 16);
	assert_last("net.veth15.rx_bytes", 16);
	stage_release(&s);
}

static void this_process_is_asked_where_the_command_cannot_be(void **state)
{
	struct stage s;
	struct error why;
	void *unused;

	(void)state;
	stage_init(&s, COMMAND);
	assert_int_equal(source_network.open(&s.context, &unused, &why), -1);
	assert_non_null(strstr(why.text, "/proc/self/net/dev: No such file"));
	stage_release(&s);
	make_file("proc/self/net/dev", HEAD LINE("eth0:", 1, 1));
	start(&s, COMMAND);
	make_file("proc/self/net/dev", HEAD LINE("eth0:", 2, 1));
	stage_slow(&s, 2 * SECOND);
	assert_last("net.eth0.rx_bytes", 1);
	stage_release(&s);
}

#define PACKETS 10
#define PACKET 1000

/* In a network namespace of its own, with one interface that gets packets once a byte comes from `go`. Says a byte
 * each time that something is done. */
static void receive_packets(int go, int done)
{
	struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI, .ifr_name = "assay0"};
	char packet[PACKET] = {0x45}, c; /* IPv4 */
	int tun, control;

	if (unshare(CLONE_NEWNET) < 0)
		_exit(1);
	tun = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (tun < 0 || control < 0 || ioctl(tun, TUNSETIFF, &request) < 0)
		_exit(1);
	request.ifr_flags = IFF_UP;
	if (ioctl(control, SIOCSIFFLAGS, &request) < 0 || write(done, "x", 1) != 1 || read(go, &c, 1) != 1)
		_exit(1);
	for (int i = 0; i < PACKETS; i++)
		if (write(tun, packet, sizeof packet) != sizeof packet)
			_exit(1);
	if (write(done, "x", 1) == 1)
		pause();
	_exit(0);
}

static void a_command_in_its_own_namespace_is_followed_and_read_to_its_end(void **state)
{
	int go[2], done[2];
	struct stage s;
	bool made;
	pid_t pid;
	char c;

	(void)state;
	procfs_set_roots(NULL, NULL);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pipe2(done, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(go[1]);
		close(done[0]);
		receive_packets(go[0], done[1]);
	}
	close(go[0]);
	close(done[1]);
	stage_init(&s, pid);
	stage_open(&s, &source_network);
	s.context.exact = true;
	stage_slow(&s, SECOND);
	made = read(done[0], &c, 1) == 1;
	stage_slow(&s, 2 * SECOND);
	made = made && write(go[1], "x", 1) == 1 && read(done[0], &c, 1) == 1;
	stage_slow(&s, 3 * SECOND);
	stage_slow(&s, 4 * SECOND);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(go[1]);
	close(done[0]);
	/* Its namespace can be read though it is gone. */
	stage_slow(&s, 5 * SECOND);
	stage_release(&s);
	need("netns", made, "no network namespace with an interface can be made");
	assert_last("net.assay0.rx_bytes", PACKETS * PACKET);
	assert_true(series_of("net.assay0.rx_bytes")->lowest < PACKET);
}

#define FAKE(test) cmocka_unit_test_setup_teardown(test, fake_roots, real_roots)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAKE(an_interface_is_shown_once_it_has_traffic),
		FAKE(an_interface_that_is_made_later_counts_from_nothing),
		FAKE(in_another_namespace_the_counters_go_on),
		FAKE(the_speed_is_in_bytes_per_second_where_sys_shows_the_same_interfaces),
		FAKE(odd_and_hostile_names_give_series_of_their_own),
		FAKE(damaged_lines_give_nothing),
		FAKE(at_most_sixteen_interfaces_are_shown),
		FAKE(this_process_is_asked_where_the_command_cannot_be),
		FAKE(a_command_in_its_own_namespace_is_followed_and_read_to_its_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
