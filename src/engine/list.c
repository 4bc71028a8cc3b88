#include "engine/engine.h"

#include <string.h>

const struct engine *const engines[] = {
#define ENGINE(id) &engine_##id,
#include "engine/list.def"
#undef ENGINE
};
const size_t engine_count = sizeof engines / sizeof *engines;

const struct engine *engine_find(const char *name)
{
	for (size_t i = 0; i < engine_count; i++)
		if (strcmp(engines[i]->name, name) == 0)
			return engines[i];
	return NULL;
}
