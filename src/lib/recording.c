/* The recording of this process: its memory and lock, begin and end, and which threads take part. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/last_error.h"
#include "lib/recording.h"

#define MODE_CHANGES_MAX 1000u /* that are noted */
/* In which round of destructors a thread that ends leaves: not the last of PTHREAD_DESTRUCTOR_ITERATIONS, which one
 * that first uses a region in a destructor may not come to. */
#define ENDINGS_MAX 3u

struct settings settings;
static _Atomic(struct recording *) memory;
static pthread_key_t thread_key;
static bool has_key;
static __thread unsigned endings;
/* The regions that were open in the thread that forks, and its state: its child finds that wiped. */
static __thread uint32_t open_at_fork;
static __thread _Alignas(16) char core_at_fork[THREAD_CORE];
static __thread struct thread *retired;
static __thread uint32_t refused_hot; /* recording_hot when this thread found no room ... */
static __thread int64_t refused_until;

/* The kernel's own mask, of all signals but these: what comes of an instruction or a refused system call is deadly
 * where it is blocked, and setuid in another thread waits for this one by libc's second signal. Its first one is
 * blocked, which libc itself would not do: that of pthread_cancel, which some versions obey although cancelling is
 * disabled. */
#define BIT_OF(signal) (UINT64_C(1) << ((signal)-1))
#define LIBC_SETXID 33
#define TO_BLOCK                                                                                                       \
	(~(BIT_OF(SIGSEGV) | BIT_OF(SIGBUS) | BIT_OF(SIGFPE) | BIT_OF(SIGILL) | BIT_OF(SIGTRAP) | BIT_OF(SIGSYS) |     \
	   BIT_OF(LIBC_SETXID)))

bool recording_enter(struct entry *e)
{
	uint64_t all = TO_BLOCK;
	int saved_errno = errno;

	if (inside)
		return false;
	e->signals = 0;
	e->is_blocked = syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &e->signals, sizeof all) == 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &e->cancel_state);
	inside = true;
	e->saved_errno = saved_errno;
	return true;
}

void recording_leave(const struct entry *e)
{
	errno = e->saved_errno;
	inside = false;
	pthread_setcancelstate(e->cancel_state, NULL);
	if (e->is_blocked)
		syscall(SYS_rt_sigprocmask, SIG_SETMASK, &e->signals, NULL, sizeof e->signals);
}

struct recording *recording_memory(void)
{
	struct recording *r = atomic_load_explicit(&memory, memory_order_acquire), *before = NULL;

	if (r)
		return r;
	r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (r == MAP_FAILED)
		return NULL;
	if (madvise(r, sizeof *r, MADV_WIPEONFORK) < 0) {
		munmap(r, sizeof *r);
		return NULL;
	}
	if (atomic_compare_exchange_strong_explicit(&memory, &before, r, memory_order_acq_rel, memory_order_acquire))
		return r;
	munmap(r, sizeof *r);
	return before;
}

struct recording *recording_memory_locked(void)
{
	struct recording *r = recording_memory();

	if (r)
		pthread_mutex_lock(&r->lock);
	return r;
}

void recording_unlock(struct recording *r)
{
	pthread_mutex_unlock(&r->lock);
}

int recording_path(uint64_t nonce, char path[PATH_MAX], const char *suffix)
{
	int length = snprintf(path, PATH_MAX, "%s/" REGION_FILE_PREFIX "%d-%016" PRIx64 "%s", settings.dir,
			      (int)getpid(), nonce, suffix);

	return length < 0 || length >= PATH_MAX ? ENAMETOOLONG : 0;
}

bool recording_take(uint64_t bytes, uint64_t limit)
{
	struct recording *r = recording_memory();

	if (!r)
		return false;
	if (atomic_fetch_add_explicit(&r->written, bytes, memory_order_relaxed) + bytes <= limit)
		return true;
	atomic_fetch_sub_explicit(&r->written, bytes, memory_order_relaxed);
	return false;
}

void recording_give_back(uint64_t bytes)
{
	struct recording *r = recording_memory();

	if (r)
		atomic_fetch_sub_explicit(&r->written, bytes, memory_order_relaxed);
}

static void announce(uint32_t mode)
{
	settings.hot_number++;
	atomic_store_explicit(&recording_hot, settings.hot_number << 2 | mode, memory_order_release);
}

static void end_thread(struct recording *r, struct thread *t)
{
	struct region_thread_end end = {.index = t->index, .mono_ns = monotonic_ns(), .cpu_ns = -1};
	struct timespec cpu;

	misuse_unfinished(r, t);
	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) == 0)
		end.cpu_ns = (int64_t)cpu.tv_sec * 1000000000 + cpu.tv_nsec;
	table_clock();
	table_append(REGION_RECORD_THREAD_END, &end, sizeof end, NULL, 0);
	atomic_store_explicit(&t->shown->last, clock_now(t->tsc), memory_order_relaxed);
	atomic_store_explicit(&t->shown->thread, UINT32_MAX, memory_order_relaxed);
}

/* Gives back this thread's state of an earlier recording, or of the parent, when the next one comes to its end: this
 * may be a signal handler that has interrupted a hot path, which goes on with it. NULL: the thread ends. */
static void retire(struct thread *t)
{
	if (retired)
		thread_file_forget(retired);
	retired = t;
}

/* This thread has no more part in it. Its file is another one's from now on. */
static void detach(struct recording *r, struct thread *t)
{
	self = &recording_nobody;
	if (!t->header || !r->live || t->run != r->run) {
		retire(t);
		return;
	}
	end_thread(r, t);
	t->hot = 0;
	t->in_use = false;
	t->beyond = t->switched_open = t->forked_open = 0;
	memset(t->orphans, 0, sizeof t->orphans);
	t->next_free = r->idle;
	r->idle = t;
}

static void thread_ended(void *value)
{
	struct entry entry;
	struct recording *r;

	if (!recording_enter(&entry))
		return;
	/* Other destructors may use regions, in this round and later ones. */
	if (++endings < ENDINGS_MAX && value == self && pthread_setspecific(thread_key, value) == 0) {
		recording_leave(&entry);
		return;
	}
	endings = ENDINGS_MAX;
	r = recording_memory_locked();
	if (r) {
		if (value == self)
			detach(r, self);
		retire(NULL);
		recording_unlock(r);
	}
	recording_leave(&entry);
}

static void before_fork(void)
{
	open_at_fork = self->hot ? atomic_load_explicit(&self->depth, memory_order_relaxed) : 0;
	memcpy(core_at_fork, self, THREAD_CORE);
}

static void in_child(void)
{
	if (self == &recording_nobody || self->header)
		return;
	memcpy((void *)self, core_at_fork, THREAD_CORE);
	if (!thread_file_stand_in(self))
		memset((void *)self, 0, THREAD_CORE);
}

/* Once per process and its children. */
static bool set_up_hooks(void)
{
	if (!has_key)
		has_key = pthread_key_create(&thread_key, thread_ended) == 0 &&
			  pthread_atfork(before_fork, NULL, in_child) == 0;
	return has_key;
}

static uint64_t make_nonce(void)
{
	uint64_t nonce;

	if (getrandom(&nonce, sizeof nonce, GRND_NONBLOCK) == (ssize_t)sizeof nonce)
		return nonce;
	/* Early in the boot. The pid is in the name, too. */
	return (uint64_t)monotonic_ns() * UINT64_C(0x9e3779b97f4a7c15);
}

/* Whether it knows which regions are open. */
static bool is_blind(uint32_t mode)
{
	return mode == REGION_OFF || mode == REGION_COUNT;
}

/* Where nobody asked for it by assay_init, and the program has only no descriptor left just now, the next region tries
 * again. */
static int give_up(struct recording *r, int failed, bool asked)
{
	r->refused = failed;
	if (asked || settings.stage != STAGE_UNSTARTED || !thread_file_may_retry(failed)) {
		settings.stage = STAGE_OFF;
		announce(REGION_OFF);
	}
	return last_error_set("%s: regions cannot be recorded there: %s", settings.dir, strerror(failed));
}

int recording_begin(struct recording *r, bool asked)
{
	int failed;

	settings.forked = settings.stage == STAGE_RECORDING;
	settings.run++;
	settings.tsc = clock_is_tsc();
	r->run = settings.run;
	r->nonce = make_nonce();
	r->started = clock_now(settings.tsc);
	r->files = r->idle = NULL;
	r->file_count = r->thread_count = 0;
	r->refused = 0;
	r->mode_changes = 0;
	for (size_t i = 0; i < REGION_TROUBLES; i++)
		atomic_store_explicit(&r->notes[i], 0, memory_order_relaxed);
	atomic_store_explicit(&r->written, 0, memory_order_relaxed);
	failed = set_up_hooks() ? table_create(r) : EINVAL;
	if (failed)
		return give_up(r, failed, asked);
	facts_write(r);
	names_write();
	r->live = true;
	settings.stage = STAGE_RECORDING;
	settings.was_blind = is_blind(settings.mode);
	announce(settings.mode);
	return 0;
}

struct recording *recording_locked(void)
{
	struct recording *r = recording_memory_locked();

	if (!r)
		return NULL;
	if (!r->live && settings.stage == STAGE_UNSTARTED && !settings_from_environment()) {
		settings.stage = STAGE_OFF;
		announce(REGION_OFF);
	}
	if (r->live || (settings.stage != STAGE_OFF && recording_begin(r, false) == 0))
		return r;
	recording_unlock(r);
	return NULL;
}

/* Said once, in the file. */
static void refuse(struct recording *r, int failed)
{
	char text[128];
	const char *const texts[] = {"libassay_refused", text};

	if (!r->refused) {
		snprintf(text, sizeof text, "a thread's file could not be made: %s", strerror(failed));
		table_append(REGION_RECORD_METADATA, NULL, 0, texts, 2);
	}
	r->refused = failed;
}

/* Not where a thread before found none, unless that may have passed. */
static bool may_attach(const struct recording *r)
{
	return endings < ENDINGS_MAX && (!r->refused || thread_file_may_retry(r->refused));
}

/* Its first event says which thread the file is of from here on, and its second what its clock shows. */
static struct thread *attach(struct recording *r)
{
	struct region_thread_born born = {.tid = (int32_t)syscall(SYS_gettid), .mono_ns = monotonic_ns()};
	struct region_event event = {.kind = REGION_EVENT_THREAD};
	const char *texts[1];
	char name[16] = "";
	int failed = 0;
	struct thread *t = may_attach(r) ? thread_file_open(r, &failed) : NULL;

	if (failed)
		refuse(r, failed);
	if (!t)
		return NULL;
	if (pthread_setspecific(thread_key, t) != 0) {
		t->in_use = false;
		t->next_free = r->idle;
		r->idle = t;
		return NULL;
	}
	t->index = r->thread_count++;
	t->forked_open = settings.forked ? open_at_fork : 0;
	open_at_fork = 0;
	prctl(PR_GET_NAME, name);
	texts[0] = name;
	born.index = t->index;
	born.file = t->number;
	table_append(REGION_RECORD_THREAD, &born, sizeof born, texts, 1);
	table_clock();
	atomic_store_explicit(&t->shown->thread, t->index, memory_order_relaxed);
	event.start = t->index;
	event.end = (uint64_t)born.tid;
	event_write(t, &event);
	thread_file_clocks(t);
	self = t;
	return t;
}

bool recording_is_refused(void)
{
	return refused_hot == atomic_load_explicit(&recording_hot, memory_order_relaxed) &&
	       (refused_until == INT64_MAX || monotonic_ns() < refused_until);
}

struct thread *recording_thread(void)
{
	struct thread *t = self;
	uint32_t hot = atomic_load_explicit(&recording_hot, memory_order_acquire);
	struct recording *r;

	if (t->hot == hot)
		return t;
	if (recording_is_refused())
		return NULL;
	r = recording_locked();
	if (!r) {
		refused_hot = hot;
		refused_until = monotonic_ns() + RETRY_NS;
		return NULL;
	}
	hot = atomic_load_explicit(&recording_hot, memory_order_relaxed);
	if ((hot & HOT_MODE) == REGION_OFF) {
		recording_unlock(r);
		return NULL;
	}
	if (t != &recording_nobody && (!t->header || t->run != r->run)) {
		detach(r, t);
		t = self;
	}
	if (t == &recording_nobody)
		t = attach(r);
	else
		misuse_switched(r, t);
	if (t) {
		t->hot = hot;
	} else {
		refused_hot = hot;
		refused_until = may_attach(r) ? monotonic_ns() + RETRY_NS : INT64_MAX;
	}
	recording_unlock(r);
	return t;
}

void recording_set_mode(struct recording *r, uint32_t mode)
{
	struct region_mode_change change = {.mono_ns = monotonic_ns(), .mode = mode};

	if (mode == settings.mode)
		return;
	settings.mode = mode;
	settings.was_blind = settings.was_blind || is_blind(mode);
	announce(mode);
	/* A program that changes it all the time leaves room for what matters more. */
	if (r->mode_changes++ < MODE_CHANGES_MAX)
		table_append(REGION_RECORD_MODE, &change, sizeof change, NULL, 0);
}

/* Another thread's: it may be in the midst of a call, so its file stays as it is. A reader sees what is open there. */
static void leave_thread(struct thread *t)
{
	struct region_thread_end end = {.index = t->index, .mono_ns = monotonic_ns(), .cpu_ns = -1};

	atomic_store_explicit(&t->shown->last, clock_now(settings.tsc), memory_order_relaxed);
	table_append(REGION_RECORD_THREAD_END, &end, sizeof end, NULL, 0);
}

void recording_end(struct recording *r)
{
	struct thread *own = self != &recording_nobody && self->header && self->run == r->run ? self : NULL;

	if (own)
		end_thread(r, own);
	announce(REGION_OFF);
	settings.stage = STAGE_OFF;
	if (own) {
		own->in_use = false;
		self = &recording_nobody;
		pthread_setspecific(thread_key, NULL);
	}
	for (struct thread *t = r->files, *next; t; t = next) {
		next = t->next_file;
		if (t->in_use) {
			leave_thread(t);
			continue;
		}
		thread_file_close(t);
		if (t == own)
			retire(t);
		else
			thread_file_forget(t);
	}
	r->files = r->idle = NULL;
	r->live = false;
	table_clock();
	table_close();
}

void recording_stay_off(void)
{
	if (settings.stage == STAGE_OFF)
		return;
	settings.stage = STAGE_OFF;
	announce(REGION_OFF);
}

static __attribute__((destructor)) void at_exit(void)
{
	struct recording *r = atomic_load_explicit(&memory, memory_order_acquire);
	struct entry entry;

	if (!r || !recording_enter(&entry))
		return;
	pthread_mutex_lock(&r->lock);
	if (r->live)
		recording_end(r);
	recording_stay_off();
	recording_unlock(r);
	recording_leave(&entry);
}
