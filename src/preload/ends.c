/* The ends of a program image: exit, _exit and exec. The kernel looks at CPU timers only at its own ticks, so the last
 * of a process comes to no signal: of short processes, most. Here it is counted before it is lost. Nothing is changed
 * in the child of a vfork, which shares our memory. */
#include <stdlib.h>
#include <unistd.h>

#include "preload/process.h"
#include "preload/real.h"
#include "preload/threads.h"
#include "preload/tick.h"

/* The calling thread's slot, settled and without a timer; NULL: there is nothing to settle. */
static struct slot *settle(void)
{
	struct slot *s = process_active() && !atomic_load(&process.restricted) ? threads_slot_here() : NULL;

	return s && tick_stop(s) ? s : NULL;
}

/* The program ends in this thread: what it used without a timer is told, once. */
static void count_unsampled(void)
{
	static _Atomic bool told;
	struct slot *s = process_active() && !atomic_load(&process.restricted) ? threads_slot_here() : NULL;

	if (s && !tick_has_timer(s) && !atomic_exchange(&told, true))
		atomic_fetch_add(&ring_header->unsampled_ns, (uint64_t)tick_thread_ns());
}

/* The program goes on after all. */
static void resume(struct slot *s)
{
	if (s)
		tick_resume(s);
}

EXPORT void _exit(int status)
{
	count_unsampled();
	settle();
	real_functions()->_exit(status);
	__builtin_unreachable();
}

EXPORT void _Exit(int status)
{
	_exit(status);
}

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
	struct slot *s = settle();
	int result = real_functions()->execve(path, argv, envp);

	resume(s);
	return result;
}

EXPORT int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
	struct slot *s = settle();
	int result = real_functions()->execvpe(file, argv, envp);

	resume(s);
	return result;
}

EXPORT int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
	struct slot *s = settle();
	int result = real_functions()->fexecve(fd, argv, envp);

	resume(s);
	return result;
}

/* Libraries that are unloaded after this one, and handlers of exit, are still sampled. */
__attribute__((destructor)) static void unloaded(void)
{
	if (!process_active())
		return;
	count_unsampled();
	resume(settle());
	atomic_store(&ring_header->closed, 1);
}
