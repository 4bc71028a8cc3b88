#include "preload/names.h"

#include <linux/seccomp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>

#include "preload/process.h"
#include "preload/real.h"
#include "preload/threads.h"

void names_set(struct slot *s, const char *name)
{
	char text[SAMPLER_NAME_BYTES] = "";

	memcpy(text, name, strnlen(name, sizeof text - 1));
	for (size_t i = 0; i < sizeof text / 8; i++) {
		uint64_t part;

		memcpy(&part, text + 8 * i, 8);
		atomic_store(&s->name[i], part);
	}
	atomic_store(&s->name_changed, 1);
}

static struct slot *slot_of_thread(pthread_t thread)
{
	for (uint32_t i = 0; i < ring_slots(); i++) {
		struct slot *s = ring_slot(i);

		if (atomic_load(&s->shared.state) == SAMPLER_SLOT_TAKEN && s->has_thread &&
		    pthread_equal(s->thread, thread))
			return s;
	}
	return NULL;
}

EXPORT int pthread_setname_np(pthread_t thread, const char *name)
{
	int result = real_functions()->pthread_setname_np(thread, name);
	struct slot *s = result == 0 && process_sampled() ? slot_of_thread(thread) : NULL;

	if (s)
		names_set(s, name);
	return result;
}

void names_look_at_prctl(int option, unsigned long a)
{
	/* Strict mode, too, makes reading the clock's register deadly. */
	if ((option == PR_SET_SECCOMP && a == SECCOMP_MODE_STRICT) || (option == PR_SET_TSC && a == PR_TSC_SIGSEGV))
		process_restrict(true);
	else if ((option == PR_SET_NO_NEW_PRIVS && a == 1) || option == PR_SET_SECCOMP)
		process_restrict(false);
}

EXPORT int prctl(int option, ...)
{
	unsigned long a, b, c, d;
	struct slot *s;
	va_list args;
	int result;

	va_start(args, option);
	a = va_arg(args, unsigned long);
	b = va_arg(args, unsigned long);
	c = va_arg(args, unsigned long);
	d = va_arg(args, unsigned long);
	va_end(args);
	names_look_at_prctl(option, a);
	result = real_functions()->prctl(option, a, b, c, d);
	if (option == PR_SET_NAME && result == 0 && process_active()) {
		s = threads_slot_here();
		if (s)
			names_set(s, (const char *)a);
	}
	return result;
}
