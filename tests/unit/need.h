/* What a test needs and a machine may lack: a cgroup to write, perf events, root, ...
 *
 * A missing capability is a skip with a reason, which ./dev test counts at its end; one that is named in $ASSAY_REQUIRE
 * (cgroup,perf,... or all) is a failure instead. Include it after cmocka.h. tests/cli/need.py does the same. */
#ifndef ASSAY_TESTS_NEED_H
#define ASSAY_TESTS_NEED_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline bool need_required(const char *capability)
{
	const char *list = getenv("ASSAY_REQUIRE");
	size_t length = strlen(capability);

	for (const char *word = list; word && *word; word += strcspn(word, ","), word += *word == ',') {
		size_t here = strcspn(word, ",");

		if ((here == length && strncmp(word, capability, length) == 0) ||
		    (here == 3 && strncmp(word, "all", 3) == 0))
			return true;
	}
	return false;
}

/* Goes on where the capability is there; else ends the test. `why` says what is missing, in a few words. */
static inline void need(const char *capability, bool there, const char *why, ...) __attribute__((format(printf, 3, 4)));

static inline void need(const char *capability, bool there, const char *why, ...)
{
	const char *results = getenv("ASSAY_RESULTS");
	char text[256];
	va_list args;

	if (there)
		return;
	va_start(args, why);
	vsnprintf(text, sizeof text, why, args);
	va_end(args);
	if (need_required(capability))
		fail_msg("ASSAY_REQUIRE asks for %s, which is not here: %s", capability, text);
	printf("SKIP %s: %s\n", capability, text);
	if (results) {
		FILE *f = fopen(results, "ae");

		if (!f || fprintf(f, "skip %s: %s\n", capability, text) < 0 || fclose(f) != 0)
			fail_msg("%s: the skip cannot be recorded there", results);
	}
	skip();
}

#endif
