#include "ingest/foreign.h"

const struct foreign *const foreigns[] = {
#define FOREIGN(name) &foreign_##name,
#include "ingest/list.def"
#undef FOREIGN
};
const size_t foreign_count = sizeof foreigns / sizeof *foreigns;

const struct foreign *foreign_of(const char *text, size_t length)
{
	for (size_t i = 0; i < foreign_count; i++)
		if (foreigns[i]->is(text, length))
			return foreigns[i];
	return NULL;
}
