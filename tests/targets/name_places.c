/* Names addresses of one ELF file: name_places [--build-id HEX] [--debug FOLDER] [--no-inlines] [--no-dwarf] [--open]
 * FILE, the addresses in hexadecimal on standard input. Prints the module's note and warnings, then of each address its
 * frames, innermost first, separated by tabs: "name|known|file|first line|line". */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "symbol/symbols.h"

static int lent = -1;

static int lend(void *context, uint32_t module)
{
	(void)context, (void)module;
	return lent;
}

static void put_build_id(struct profile_module *m, const char *hex)
{
	for (; hex[0] && hex[1] && m->build_id_length < sizeof m->build_id; hex += 2) {
		unsigned byte;

		if (sscanf(hex, "%2x", &byte) != 1)
			return;
		m->build_id[m->build_id_length++] = (uint8_t)byte;
	}
}

static int build(struct profile *p, const struct profile_module *module, struct error *err)
{
	uint64_t address;
	int image = profile_add_image(p, getpid(), 1, 0, "x", "x", err);
	int number = image < 0 ? -1 : profile_add_module(p, module, err);

	while (number >= 0 && scanf("%" SCNx64, &address) == 1)
		if (profile_add_node(p, 0, (uint32_t)number, address, err) < 0)
			return -1;
	return number;
}

static void print(const struct profile *p, const struct warnings *w)
{
	printf("note: %s\n", p->modules[0].note ? p->modules[0].note : "");
	for (size_t i = 0; i < w->count; i++)
		printf("warning: %s\n", w->texts[i]);
	for (size_t i = 0; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];

		printf("%" PRIx64, l->address);
		for (uint32_t k = 0; k < l->count; k++) {
			const struct profile_frame *frame = &p->frames[l->first + k];
			const struct profile_function *f = &p->functions[frame->function];

			printf("\t%s|%d|%s|%" PRIu32 "|%" PRIu32, f->name, f->known, f->file ? f->file : "", f->line,
			       frame->line);
		}
		printf("\n");
	}
}

int main(int argc, char **argv)
{
	struct symbols_options options = {.module_fd = lend};
	struct profile_module module = {.kind = PROFILE_FILE};
	struct profile p;
	struct warnings w;
	struct error err = {""};
	struct stat st;
	int at = 1, result;

	for (; at < argc - 1 && argv[at][0] == '-'; at++) {
		if (strcmp(argv[at], "--build-id") == 0)
			put_build_id(&module, argv[++at]);
		else if (strcmp(argv[at], "--debug") == 0)
			options.debug_folder = argv[++at];
		else if (strcmp(argv[at], "--no-inlines") == 0)
			options.no_inlines = true;
		else if (strcmp(argv[at], "--no-dwarf") == 0)
			options.no_dwarf = true;
		else if (strcmp(argv[at], "--vdso") == 0)
			module.kind = PROFILE_VDSO;
		else if (strcmp(argv[at], "--open") == 0)
			lent = open(argv[argc - 1], O_RDONLY | O_CLOEXEC);
	}
	if (at != argc - 1)
		return 2;
	module.path = argv[at];
	if (stat(argv[at], &st) == 0) {
		module.device = st.st_dev;
		module.inode = st.st_ino;
		module.size = (uint64_t)st.st_size;
		module.mtime_ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
	}
	profile_init(&p);
	warnings_init(&w);
	result = build(&p, &module, &err) < 0 ? -1 : symbols_resolve(&p, &options, &w, &err);
	print(&p, &w);
	if (result < 0)
		fprintf(stderr, "%s\n", err.text);
	profile_release(&p);
	warnings_release(&w);
	return result < 0;
}
