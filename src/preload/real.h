/* The functions that we stand in for, as they are behind us: libc's, or those of another library in between. */
#ifndef ASSAY_PRELOAD_REAL_H
#define ASSAY_PRELOAD_REAL_H

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>
#include <threads.h>
#include <time.h>

/* Of what the library exports: exactly the functions that it stands in for. */
#define EXPORT __attribute__((visibility("default")))

/* name, result, parameters */
#define REAL_FUNCTIONS(X) \
	X(pthread_create, int, (pthread_t *, const pthread_attr_t *, void *(*)(void *), void *)) \
	X(thrd_create, int, (thrd_t *, thrd_start_t, void *)) \
	X(clone, int, (int (*)(void *), void *, int, void *, ...)) \
	X(_Fork, pid_t, (void)) \
	X(_exit, void, (int)) \
	X(_Exit, void, (int)) \
	X(execve, int, (const char *, char *const *, char *const *)) \
	X(execv, int, (const char *, char *const *)) \
	X(execvpe, int, (const char *, char *const *, char *const *)) \
	X(execvp, int, (const char *, char *const *)) \
	X(fexecve, int, (int, char *const *, char *const *)) \
	X(pthread_setname_np, int, (pthread_t, const char *)) \
	X(prctl, int, (int, ...)) \
	X(dlclose, int, (void *)) \
	X(sigaction, int, (int, const struct sigaction *, struct sigaction *)) \
	X(__sigaction, int, (int, const struct sigaction *, struct sigaction *)) \
	X(signal, sighandler_t, (int, sighandler_t)) \
	X(sysv_signal, sighandler_t, (int, sighandler_t)) \
	X(sigset, sighandler_t, (int, sighandler_t)) \
	X(sighold, int, (int)) \
	X(sigignore, int, (int)) \
	X(siginterrupt, int, (int, int)) \
	X(sigprocmask, int, (int, const sigset_t *, sigset_t *)) \
	X(pthread_sigmask, int, (int, const sigset_t *, sigset_t *)) \
	X(sigwait, int, (const sigset_t *, int *)) \
	X(sigwaitinfo, int, (const sigset_t *, siginfo_t *)) \
	X(sigtimedwait, int, (const sigset_t *, siginfo_t *, const struct timespec *)) \
	X(signalfd, int, (int, const sigset_t *, int)) \
	X(sigaltstack, int, (const stack_t *, stack_t *))

struct real_functions {
#define X(name, result, parameters) result(*name) parameters;
	REAL_FUNCTIONS(X)
#undef X
};

/* Looked up once, at the latest here. Never in a signal handler or a forked child for the first time: the constructor
 * has called it. */
const struct real_functions *real_functions(void);

#endif
