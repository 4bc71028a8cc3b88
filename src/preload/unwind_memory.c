/* What of a thread's memory can be read: see unwind_memory.h. Only this file makes system calls in a walk. */
#include "preload/unwind_memory.h"

#include <errno.h>
#include <sys/syscall.h>

#define PAGE ((uintptr_t)4096)

/* No address lies in it, and its upper end can be lowered by 8. */
static const struct unwind_range nowhere = {16, 8};

static struct unwind_range usable(uintptr_t low, uintptr_t high)
{
	return high > low && high - low >= 8 ? (struct unwind_range){low, high} : nowhere;
}

void unwind_memory_init(struct unwind_memory *m, const struct unwind_options *options)
{
	m->known = usable(options->known.low, options->known.high);
	m->alternate = nowhere;
	m->probed = nowhere;
	m->may_probe = options->may_probe;
	m->refused = false;
}

void unwind_memory_alternate(struct unwind_memory *m, uintptr_t low, uintptr_t high)
{
	m->alternate = usable(low, high);
}

#ifdef __x86_64__
/* rt_sigprocmask reads the new mask before it looks at what to do with it: EFAULT says that the memory cannot be read,
 * EINVAL that it can, and nothing is changed. The instruction itself is here so that errno stays as it was. */
static bool page_is_readable(uintptr_t page)
{
	register long size __asm__("r10") = 8;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"((long)SYS_rt_sigprocmask), "D"(-1L), "S"(page), "d"(0L), "r"(size)
			 : "rcx", "r11", "memory");
	return result == -EINVAL;
}
#endif

static bool probe_page(struct unwind_memory *m, uintptr_t page)
{
	if (!page || page > UINTPTR_MAX - 2 * PAGE || !page_is_readable(page))
		return false;
	if (m->probed.high == page)
		m->probed.high += PAGE;
	else if (m->probed.low == page + PAGE)
		m->probed.low = page;
	else
		m->probed = (struct unwind_range){page, page + PAGE};
	return true;
}

bool unwind_memory_probe(struct unwind_memory *m, uintptr_t at)
{
	uintptr_t first = at & ~(PAGE - 1), last = (at + 7) & ~(PAGE - 1);

	if (m->may_probe && at <= UINTPTR_MAX - 8 && probe_page(m, first) && (first == last || probe_page(m, last)))
		return true;
	m->refused = true;
	return false;
}
