/* Any bytes as a ring file: it is refused, or what is drained from it gives a segment without damage. An input without
 * the magic is laid out behind a good header: how much is used (64 bytes), the area of modules (4096 bytes), then the
 * rings of two slots. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "record/image.h"
#include "record/rings.h"
#include "store/samples.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MODULES 4096u
#define SLOTS 2u
#define FILE_BYTES (4096 + MODULES + SLOTS * SAMPLER_SLOT_BYTES)

static char folder[] = "/tmp/assay-fuzz-ring-XXXXXX";
static char ring_path[64], segment_path[64];

static void require(int condition)
{
	if (!condition)
		abort();
}

static void remove_folder(void)
{
	unlink(ring_path);
	unlink(segment_path);
	rmdir(folder);
}

static void make_folder(void)
{
	require(mkdtemp(folder) != NULL);
	snprintf(ring_path, sizeof ring_path, "%s/1.ring", folder);
	snprintf(segment_path, sizeof segment_path, "%s/s.seg", folder);
	atexit(remove_folder);
}

static size_t take(void *to, size_t room, const uint8_t **data, size_t *size)
{
	size_t length = *size < room ? *size : room;

	memcpy(to, *data, length);
	*data += length;
	*size -= length;
	return length;
}

static void lay_out(uint8_t *file, const uint8_t *data, size_t size)
{
	struct sampler_header *h = (struct sampler_header *)file;
	uint64_t counts[8] = {0};

	memcpy(h->magic, SAMPLER_MAGIC, sizeof h->magic);
	h->version = SAMPLER_VERSION;
	h->hz = 199;
	h->slot_size = SAMPLER_SLOT_BYTES;
	h->slot_max = SLOTS;
	h->modules_offset = 4096;
	h->modules_bytes = MODULES;
	h->slots_offset = 4096 + MODULES;
	h->slots = SLOTS;
	take(counts, sizeof counts, &data, &size);
	atomic_store(&h->modules_used, counts[0]);
	take(file + 4096, MODULES, &data, &size);
	for (uint32_t i = 0; i < SLOTS; i++) {
		uint8_t *slot = file + h->slots_offset + i * SAMPLER_SLOT_BYTES;

		atomic_store(&((struct sampler_slot *)slot)->head, counts[1 + 2 * i]);
		atomic_store(&((struct sampler_slot *)slot)->tail, counts[2 + 2 * i]);
		take(slot + SAMPLER_RING_OFFSET, SAMPLER_RING_BYTES / SLOTS, &data, &size);
	}
}

static void drain(struct ring *ring)
{
	static struct image_shared shared;
	struct warnings warnings;
	struct image *image;
	struct ring_counts counts;
	struct profile p;
	struct error err;

	memset(&shared, 0, sizeof shared);
	warnings_init(&warnings);
	unlink(segment_path);
	require(samples_writer_new(segment_path, WIRE_RECORDER_PRELOAD, 199, 0, &shared.writer, &err) == 0);
	require(module_files_new(shared.writer, &warnings, &shared.files, &err) == 0);
	samples_writer_image(shared.writer, 1, 0, 0, ring->exe, "");
	require(image_new(&shared, ring, 0, 0, &image, &err) == 0);
	image_drain(image, 0, 1);
	ring_count(ring, &counts);
	image_release(image);
	image_drain(image, 0, 2);
	image_free(image);
	samples_writer_free(shared.writer);
	module_files_free(shared.files);
	warnings_release(&warnings);
	profile_init(&p);
	require(samples_read(segment_path, &p, &err) == 0 && !p.damaged);
	profile_release(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t file[FILE_BYTES];
	struct ring *ring = NULL;
	struct error err;

	if (!*ring_path)
		make_folder();
	memset(file, 0, sizeof file);
	if (size >= 8 && memcmp(data, SAMPLER_MAGIC, 8) == 0) {
		require(fs_write_file(ring_path, data, size, &err) == 0);
	} else {
		lay_out(file, data, size);
		require(fs_write_file(ring_path, file, sizeof file, &err) == 0);
	}
	if (ring_open(ring_path, &ring, &err) == 0)
		drain(ring);
	else
		require(ring == NULL && strlen(err.text) > 0);
	return 0;
}
