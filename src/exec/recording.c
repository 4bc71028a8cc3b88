/* What the helper keeps besides the logs: one segment, written by several threads. */
#include "exec/pump.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Sparse, and far beyond what chunks and exits need in a day: it only has to be mapped. */
#define CAPACITY (UINT64_C(1) << 30)
#define TRIM_EVERY 1024 /* records; about 100 KiB */

void recording_open(struct recording *r, const char *path, int wake)
{
	int failed = 0;

	*r = (struct recording){.lock = PTHREAD_MUTEX_INITIALIZER, .segment = {.fd = -1}, .wake = wake};
	if (path)
		failed = segment_create(&r->segment, path, SEGMENT_KIND_OUTPUT, CAPACITY);
	r->lost = !path || failed;
	if (failed)
		recording_trouble(
			r, "%s: the times of the command's output and the ends of its processes are not kept: %s.",
			basename(path), strerror(-failed));
}

void recording_wake(struct recording *r)
{
	const uint64_t one = 1;

	/* Fails only when the counter is full, and then the main thread is awake. */
	while (write(r->wake, &one, sizeof one) < 0 && errno == EINTR)
		;
}

static void add_trouble(struct recording *r, const char *text)
{
	if (r->trouble_count < TROUBLES)
		snprintf(r->troubles[r->trouble_count++], sizeof r->troubles[0], "%s", text);
}

void recording_append(struct recording *r, uint16_t type, const void *payload, size_t length)
{
	int failed = 0;

	pthread_mutex_lock(&r->lock);
	if (!r->lost) {
		failed = segment_append(&r->segment, type, 0, payload, length);
		if (++r->appended % TRIM_EVERY == 0)
			segment_trim(&r->segment);
	}
	if (failed) {
		char text[256];

		r->lost = true;
		snprintf(text, sizeof text,
			 "The times of the command's output and the ends of its processes are not kept any more: %s.",
			 strerror(-failed));
		add_trouble(r, text);
	}
	pthread_mutex_unlock(&r->lock);
	if (failed)
		recording_wake(r);
}

void recording_trouble(struct recording *r, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	pthread_mutex_lock(&r->lock);
	add_trouble(r, text);
	pthread_mutex_unlock(&r->lock);
	recording_append(r, WIRE_NOTE, text, strlen(text));
	recording_wake(r);
}
