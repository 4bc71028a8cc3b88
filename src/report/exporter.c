#include "report/exporter.h"

#include <string.h>

const struct exporter exporters[] = {
#define EXPORTER(name, extension, binary, summary) {#name, extension, binary, summary, export_##name},
#include "report/exporters.def"
#undef EXPORTER
};
const size_t exporter_count = sizeof exporters / sizeof *exporters;

const struct exporter *exporter_find(const char *name)
{
	for (size_t i = 0; i < exporter_count; i++)
		if (strcmp(exporters[i].name, name) == 0)
			return &exporters[i];
	return NULL;
}

const struct exporter *exporter_for_path(const char *path)
{
	size_t length = strlen(path);

	for (size_t i = 0; i < exporter_count; i++) {
		size_t end = strlen(exporters[i].extension);

		if (length > end && strcmp(path + length - end, exporters[i].extension) == 0)
			return &exporters[i];
	}
	return NULL;
}
