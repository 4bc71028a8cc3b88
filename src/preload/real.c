#include "preload/real.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

static struct real_functions functions;
static _Atomic int found;

/* Two threads may do this at once: they find the same. */
const struct real_functions *real_functions(void)
{
	if (atomic_load_explicit(&found, memory_order_acquire))
		return &functions;
#define X(name, result, parameters) \
	{ \
		void *at = dlsym(RTLD_NEXT, #name); \
		memcpy(&functions.name, &at, sizeof at); \
	}
	REAL_FUNCTIONS(X)
#undef X
	atomic_store_explicit(&found, 1, memory_order_release);
	return &functions;
}
