/* syscall(2), as far as it restricts the program's system calls or its reading of the clock: that must be known before
 * it takes effect. A call may return twice, or on another stack (clone), so there is no frame of ours around it: it is
 * looked at and jumped on to. */
#if defined(__x86_64__)

#include <linux/seccomp.h>
#include <string.h>
#include <dlfcn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "preload/names.h"
#include "preload/process.h"
#include "preload/real.h"

/* libc's, or that of another library behind us; NULL until the first call. Named by the code below. */
extern void *syscall_next;
void syscall_look(long number, long a, long b);

void *syscall_next;

void syscall_look(long number, long a, long b)
{
	if (!syscall_next)
		syscall_next = dlsym(RTLD_NEXT, "syscall");
	if (number == SYS_seccomp)
		process_restrict(a == SECCOMP_SET_MODE_STRICT);
	else if (number == SYS_prctl)
		names_look_at_prctl((int)a, (unsigned long)b);
}

_Static_assert(SYS_seccomp == 317 && SYS_prctl == 157, "the numbers that the code below compares with");

__asm__(".text\n"
	".globl syscall\n"
	".type syscall, @function\n"
	"syscall:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	movq syscall_next(%rip), %rax\n"
	"	testq %rax, %rax\n"
	"	je 1f\n"
	"	cmpq $317, %rdi\n"
	"	je 1f\n"
	"	cmpq $157, %rdi\n"
	"	je 1f\n"
	"	jmp *%rax\n"
	"1:\n"
	"	pushq %rdi\n	.cfi_adjust_cfa_offset 8\n"
	"	pushq %rsi\n	.cfi_adjust_cfa_offset 8\n"
	"	pushq %rdx\n	.cfi_adjust_cfa_offset 8\n"
	"	pushq %rcx\n	.cfi_adjust_cfa_offset 8\n"
	"	pushq %r8\n	.cfi_adjust_cfa_offset 8\n"
	"	pushq %r9\n	.cfi_adjust_cfa_offset 8\n"
	"	subq $8, %rsp\n	.cfi_adjust_cfa_offset 8\n"
	"	call syscall_look\n"
	"	addq $8, %rsp\n	.cfi_adjust_cfa_offset -8\n"
	"	popq %r9\n	.cfi_adjust_cfa_offset -8\n"
	"	popq %r8\n	.cfi_adjust_cfa_offset -8\n"
	"	popq %rcx\n	.cfi_adjust_cfa_offset -8\n"
	"	popq %rdx\n	.cfi_adjust_cfa_offset -8\n"
	"	popq %rsi\n	.cfi_adjust_cfa_offset -8\n"
	"	popq %rdi\n	.cfi_adjust_cfa_offset -8\n"
	"	movq syscall_next(%rip), %rax\n"
	"	jmp *%rax\n"
	"	.cfi_endproc\n"
	".size syscall, .-syscall\n");

#endif
