#include "source/source.h"

const struct source *const sources[] = {
#define SOURCE(name) &source_##name,
#include "source/list.def"
#undef SOURCE
};
const size_t source_count = sizeof sources / sizeof *sources;
