/* System calls without libc: they leave errno alone and need no thread-local storage, which threads made by clone may
 * share with others or lack. Each returns what the kernel does: -errno where it fails. */
#ifndef ASSAY_PRELOAD_KERNEL_H
#define ASSAY_PRELOAD_KERNEL_H

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
static inline long kernel_call(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}
#else
static inline long kernel_call(long number, long a, long b, long c, long d, long e, long f)
{
	int saved = errno;
	long result = syscall(number, a, b, c, d, e, f);

	if (result == -1)
		result = -errno;
	errno = saved;
	return result;
}
#endif

/* With fewer arguments; pointers and numbers alike. */
#define KERNEL_0(number) kernel_call((number), 0, 0, 0, 0, 0, 0)
#define KERNEL_1(number, a) kernel_call((number), (long)(a), 0, 0, 0, 0, 0)
#define KERNEL_2(number, a, b) kernel_call((number), (long)(a), (long)(b), 0, 0, 0, 0)
#define KERNEL_3(number, a, b, c) kernel_call((number), (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define KERNEL_4(number, a, b, c, d) kernel_call((number), (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define KERNEL_6(number, a, b, c, d, e, f) \
	kernel_call((number), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* A set of signals as the kernel has it: bit n-1 for signal n. */
#define KERNEL_SIGNAL_BIT(signal) (UINT64_C(1) << ((signal) - 1))

/* `how` and the sets as in sigprocmask; either may be NULL. */
static inline long kernel_mask(int how, const uint64_t *set, uint64_t *old)
{
	return KERNEL_4(SYS_rt_sigprocmask, how, set, old, 8);
}

static inline int kernel_tid(void)
{
	return (int)KERNEL_0(SYS_gettid);
}

static inline int kernel_pid(void)
{
	return (int)KERNEL_0(SYS_getpid);
}

#endif
