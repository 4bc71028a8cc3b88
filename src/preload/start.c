#include "preload/process.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "preload/kernel.h"
#include "preload/modules.h"
#include "preload/real.h"
#include "preload/signals.h"
#include "preload/threads.h"
#include "preload/tick.h"
#include "preload/unwind.h"

#define HZ_DEFAULT 199u
#define HZ_MAX 10000u
#define STACK_MAX (UINT64_C(1) << 30) /* where the first thread's stack has no limit */

struct process process;

static char folder[PATH_MAX];

int64_t process_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

bool process_sampled(void)
{
	_Atomic uint32_t *here = atomic_load(&process.here);

	return atomic_load(&process.state) == PROCESS_ON && atomic_load_explicit(here, memory_order_relaxed) == 1;
}

bool process_active(void)
{
	return process_sampled() && !atomic_load(&process.restricted) && kernel_pid() == process.pid;
}

void process_trouble(uint32_t bit)
{
	if (!(atomic_load_explicit(&ring_header->trouble, memory_order_relaxed) & bit))
		atomic_fetch_or(&ring_header->trouble, bit);
}

/* Does reading the clock take no system call? Where it does, a tick would make one. */
static bool clock_is_free(void)
{
	static const char *const free_sources[] = {
		"tsc",
		"kvm-clock",
		"hyperv_clocksource_tsc_page",
		"arch_sys_counter",
	};
	char text[64] = "";
	long fd = KERNEL_3(SYS_openat, AT_FDCWD, "/sys/devices/system/clocksource/clocksource0/current_clocksource",
			   O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	KERNEL_3(SYS_read, fd, text, sizeof text - 1);
	KERNEL_1(SYS_close, fd);
	text[strcspn(text, "\n")] = '\0';
	for (size_t i = 0; i < sizeof free_sources / sizeof *free_sources; i++)
		if (strcmp(text, free_sources[i]) == 0)
			return true;
	return false;
}

void process_restrict(bool without_clock)
{
	if (!process_sampled())
		return;
	if (without_clock)
		atomic_store(&process.blind, true);
	if (!process_active())
		return;
	process_trouble(SAMPLER_RESTRICTED);
	tick_unwatch();
	if (without_clock || !clock_is_free())
		for (uint32_t i = 0; i < ring_slots(); i++)
			tick_disarm(ring_slot(i));
	atomic_store(&process.restricted, true);
}

/* From the lowest that the limit lets it grow to, up to the page that ends with the program's name. */
static struct unwind_range first_stack(void)
{
	uintptr_t name = (uintptr_t)getauxval(AT_EXECFN);
	struct rlimit limit;
	uint64_t size = STACK_MAX;

	if (!name)
		return (struct unwind_range){0};
	if (KERNEL_4(SYS_prlimit64, 0, RLIMIT_STACK, NULL, &limit) == 0 && limit.rlim_cur < size)
		size = limit.rlim_cur;
	name = (name | 4095) + 1;
	return (struct unwind_range){name > size ? name - size : 0, name};
}

static uint32_t wanted_hz(void)
{
	const char *text = secure_getenv(SAMPLER_HZ_VARIABLE);
	uint32_t hz = 0;

	for (; text && *text >= '0' && *text <= '9' && hz <= HZ_MAX; text++)
		hz = 10 * hz + (uint32_t)(*text - '0');
	return hz >= 1 && hz <= HZ_MAX && text && *text == '\0' ? hz : HZ_DEFAULT;
}

/* A file, a slot and a timer for the only thread there is. */
static bool begin(struct unwind_range stack, bool is_new)
{
	struct slot *s;

	process.pid = kernel_pid();
	if (ring_open(folder, process.hz, atomic_load(&process.signal)) < 0)
		return false;
	atomic_store(process.here, 1);
	atomic_store(&process.state, PROCESS_ON);
	s = ring_take(kernel_tid());
	if (s)
		threads_begin(s, stack, true, is_new);
	tick_watch();
	return true;
}

static void forked_child(void)
{
	process_forked();
}

/* valgrind runs the program on a processor of its own, which no signal may interrupt where ours do. */
static bool under_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "/vgpreload_");
}

static bool start(void)
{
	const char *named = secure_getenv(SAMPLER_DIR_VARIABLE);
	_Atomic uint32_t *here;

	if (!named || *named != '/' || strlen(named) >= sizeof folder || under_valgrind())
		return false;
	strcpy(folder, named);
	here = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (here == MAP_FAILED)
		return false;
	atomic_store(&process.here, here);
	if (madvise((void *)here, 4096, MADV_WIPEONFORK) < 0 || !threads_prepare() ||
	    pthread_atfork(NULL, NULL, forked_child) != 0)
		return false;
	process.hz = wanted_hz();
	process.stack = first_stack();
	unwind_init(); /* without its memory, walks are slow and nothing else */
	atomic_store(&process.signal, signals_choose());
	signals_look_at_stack();
	return atomic_load(&process.signal) > 0 && begin(process.stack, false);
}

void process_start(void)
{
	int before = PROCESS_NEW, saved = errno;

	if (atomic_load(&process.state) != PROCESS_NEW ||
	    !atomic_compare_exchange_strong(&process.state, &before, PROCESS_STARTING))
		return;
	real_functions();
	if (!start())
		atomic_store(&process.state, PROCESS_OFF);
	errno = saved;
}

void process_forked(void)
{
	int saved = errno;
	struct unwind_range stack;

	if (atomic_load(&process.state) != PROCESS_ON || atomic_load(process.here) == 1)
		return;
	atomic_store(&process.state, PROCESS_OFF);
	stack = threads_stack_here();
	ring_forget();
	modules_forget();
	tick_forget();
	signals_forked();
	/* Every module is to be said again. Nothing is waited for: no walk is under way here. */
	unwind_modules_closing();
	unwind_modules_changed();
	if (!atomic_load(&process.restricted))
		begin(stack, true);
	errno = saved;
}

__attribute__((constructor)) static void loaded(void)
{
	process_start();
}
