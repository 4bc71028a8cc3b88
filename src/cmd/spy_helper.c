/* assay-spy: watches the memory of a process for libassay, whose child it was. The library starts it with
 *
 *   assay-spy VERSION PID DELAY_NS FLAGS HOST
 *
 * and wire/spy.h's socket and page. It ends with the program that asked (HOST), with that program's next exec, and when
 * it is told to. It prints nothing: there is nobody to read it. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "record/spy.h"
#include "wire/spy.h"

/* How old the figures of a spy that is killed may be. */
#define PUBLISH_EVERY_NS (50 * NS_PER_MS)
#define CPUS_MAX 8192

_Static_assert(SPY_WIRE_RESOURCES == SPY_RESOURCES && SPY_WIRE_GPUS == SPY_GPUS_MAX, "the same resources");

struct job {
	struct spy_options options;
	pid_t host;
	struct spy *spy;
	struct spy_wire_page *page;
	int64_t published; /* 0: not yet */
};

static void tell(enum spy_wire_news news, const char *text)
{
	struct spy_wire_message message = {.news = news, .pid = (int32_t)getpid()};

	snprintf(message.text, sizeof message.text, "%s", text);
	/* Where nobody listens any more, the next look at the socket says so. */
	(void)send(SPY_WIRE_SOCKET, &message, sizeof message, MSG_NOSIGNAL);
}

static void copy_monitor(struct spy_wire_monitor *to, const struct monitor *from, int64_t begin)
{
	*to = (struct spy_wire_monitor){
		.begin = from->begin,
		.end = from->end,
		.peak = from->peak,
		.peak_at = from->n ? from->peak_at - begin : 0,
		.n = from->n,
		.average = monitor_average(from),
	};
}

static void publish(struct job *job, bool final)
{
	uint32_t slot = job->page->current == 1 ? 2 : 1;
	struct spy_wire_figures *f = &job->page->slots[slot - 1];
	struct spy_result r;

	spy_figures(job->spy, final, &r);
	for (size_t i = 0; i < SPY_RESOURCES; i++)
		copy_monitor(&f->resources[i], &r.resources[i], r.begin);
	for (size_t i = 0; i < r.gpu_count; i++)
		copy_monitor(&f->gpus[i], &r.gpus[i], r.begin);
	f->gpu_count = r.gpu_count;
	f->high_water_begin = r.high_water_begin;
	f->high_water_end = r.high_water_end;
	f->peak = r.peak;
	f->peak_above = r.peak_above;
	f->seconds_ns = r.end - r.begin;
	f->exact = r.peak_exact;
	f->gone = r.how == SPY_GONE;
	spy_result_release(&r);
	__atomic_store_n(&job->page->current, slot, __ATOMIC_RELEASE);
}

static void on_sample(void *context, const struct spy_sample *s)
{
	struct job *job = context;
	bool first = job->published == 0;

	if (!first && s->t - job->published < PUBLISH_EVERY_NS)
		return;
	job->published = s->t;
	publish(job, false);
	if (first)
		tell(SPY_WIRE_READY, "");
}

/* The page, or NULL: then it was not the library of this version that started us. */
static struct spy_wire_page *map_page(void)
{
	struct spy_wire_page *page;
	struct stat st;

	if (fstat(SPY_WIRE_PAGE, &st) < 0 || st.st_size != (off_t)sizeof *page)
		return NULL;
	page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, SPY_WIRE_PAGE, 0);
	return page != MAP_FAILED && page->version == SPY_WIRE_VERSION ? page : NULL;
}

static bool read_arguments(int argc, char **argv, struct job *ret)
{
	int64_t version, pid, delay, flags, host;
	struct stat st;

	if (argc != 6 || !parse_i64(argv[1], &version) || !parse_i64(argv[2], &pid) || !parse_i64(argv[3], &delay) ||
	    !parse_i64(argv[4], &flags) || !parse_i64(argv[5], &host))
		return false;
	if (fstat(SPY_WIRE_SOCKET, &st) < 0 || !S_ISSOCK(st.st_mode))
		return false;
	ret->host = (pid_t)host;
	ret->options = (struct spy_options){
		.pid = (pid_t)pid,
		.tree = flags & SPY_WIRE_TREE,
		.gpu = flags & SPY_WIRE_GPU,
		.pss = flags & SPY_WIRE_PSS,
		.delay_ns = delay,
		.sample = on_sample,
		.context = ret,
	};
	return version == SPY_WIRE_VERSION;
}

/* Nothing of the host's is held: neither its files, whose readers wait for their end, nor its folder, nor the CPUs that
 * it keeps for itself. */
static void leave_host(void)
{
	cpu_set_t *all = CPU_ALLOC(CPUS_MAX);
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd <= 2; fd++)
		if (nowhere < 0 || (nowhere != fd && dup2(nowhere, fd) < 0))
			close(fd);
	if (syscall(SYS_close_range, SPY_WIRE_PAGE + 1, ~0U, 0) < 0)
		for (int fd = SPY_WIRE_PAGE + 1, end = (int)sysconf(_SC_OPEN_MAX); fd < end; fd++)
			close(fd);
	if (chdir("/") < 0)
		tell(SPY_WIRE_FAILED, "/ cannot be entered");
	if (!all)
		return;
	memset(all, 0xff, CPU_ALLOC_SIZE(CPUS_MAX));
	/* The kernel takes those of them that there are. Failing that, it stays where it is. */
	(void)sched_setaffinity(0, CPU_ALLOC_SIZE(CPUS_MAX), all);
	CPU_FREE(all);
}

static int add(int epoll, int fd)
{
	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &(struct epoll_event){.events = EPOLLIN, .data.fd = fd});
}

/* Becomes readable when it is time to end. The socket's other end is closed when the host ends or execs, but a fork of
 * the host may hold it open for longer. */
static int open_reasons(pid_t host)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), pidfd = (int)syscall(SYS_pidfd_open, host, 0);

	if (epoll < 0 || add(epoll, SPY_WIRE_SOCKET) < 0 || (pidfd >= 0 && add(epoll, pidfd) < 0))
		return -1;
	return epoll;
}

static int watch(struct job *job)
{
	int reasons = open_reasons(job->host);
	struct epoll_event event = {0};
	struct error err;
	char any;

	job->page = map_page();
	if (!job->page || reasons < 0) {
		tell(SPY_WIRE_FAILED,
		     job->page ? "epoll cannot be used" : "libassay and assay-spy are of two versions");
		return 3;
	}
	/* Timers may be late by 50 us as a rule, which short delays would feel. */
	(void)prctl(PR_SET_TIMERSLACK, job->options.delay_ns >= NS_PER_MS ? 50000 : 1000);
	if (spy_new(&job->options, &job->spy, &err) < 0) {
		tell(SPY_WIRE_FAILED, err.text);
		return 2;
	}
	spy_watch(job->spy, reasons, 0);
	publish(job, true);
	if (!job->published) {
		snprintf(err.text, sizeof err.text, "process %d has ended", (int)job->options.pid);
		tell(SPY_WIRE_FAILED, err.text);
	}
	/* Of a process that has ended, the figures are kept until they are asked for. */
	while (epoll_wait(reasons, &event, 1, -1) < 0 && errno == EINTR)
		;
	if (event.data.fd == SPY_WIRE_SOCKET && recv(SPY_WIRE_SOCKET, &any, 1, MSG_DONTWAIT) > 0)
		tell(SPY_WIRE_DONE, "");
	spy_free(job->spy);
	return 0;
}

int main(int argc, char **argv)
{
	struct job job = {0};
	pid_t host = getppid(), child;

	if (!read_arguments(argc, argv, &job)) {
		fprintf(stderr,
			"assay-spy: libassay starts this program; `assay spy PID` watches a process's memory\n");
		return 2;
	}
	leave_host();
	if (host != job.host) {
		/* Or it has ended, and nobody reads this. */
		tell(SPY_WIRE_FAILED, "the program has left its pid namespace (unshare), so that no process that it "
				      "starts can see it");
		return 3;
	}
	/* The host waits for us, not for the child: it shall have no child that it did not make. */
	child = fork();
	if (child < 0)
		tell(SPY_WIRE_FAILED, strerror(errno));
	return child ? 0 : watch(&job);
}
