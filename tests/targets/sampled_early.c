/* A library whose constructor, which runs before the sampler begins, sets a small alternate stack and a handler that
 * runs there. */
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>

void sampled_early_raise(int times);

static volatile unsigned spun;

static void spin(int signal)
{
	(void)signal;
	for (unsigned i = 0; i < 200000; i++)
		spun += i;
}

__attribute__((constructor)) static void early(void)
{
	struct sigaction action = {.sa_handler = spin, .sa_flags = SA_ONSTACK};
	/* A page that may not be touched lies below it. */
	char *memory = mmap(NULL, 12288, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = {.ss_sp = memory + 4096, .ss_size = 8192};

	if (memory != MAP_FAILED && mprotect(memory + 4096, 8192, PROT_READ | PROT_WRITE) == 0 &&
	    sigaltstack(&stack, NULL) == 0)
		sigaction(SIGUSR1, &action, NULL);
}

void sampled_early_raise(int times)
{
	for (int i = 0; i < times; i++)
		raise(SIGUSR1);
}
