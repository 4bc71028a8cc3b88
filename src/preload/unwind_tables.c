#include "preload/unwind_tables.h"

#include "cfi/program.h"

#define STATES_MAX 2u /* compilers nest one deep */

uintptr_t unwind_image_limit(const struct unwind_image *image, uintptr_t at, uintptr_t *ret_low)
{
	for (unsigned i = 0; i < image->segments; i++)
		if (at - image->base >= image->low[i] && at - image->base < image->high[i]) {
			*ret_low = image->base + image->low[i];
			return image->base + image->high[i];
		}
	return 0;
}

bool unwind_image_is_code(const struct unwind_image *image, uintptr_t at)
{
	for (unsigned i = 0; i < image->segments; i++)
		if (image->code >> i & 1 && at - image->base >= image->low[i] && at - image->base < image->high[i])
			return true;
	return false;
}

/* Where the entry for pc stands, if there is one; 0 where there is none. Apart, as the next is, so that the stack is
 * given back before programs run. */
__attribute__((noinline)) static uintptr_t search(const struct unwind_image *image, uintptr_t pc)
{
	uintptr_t low, limit = image->header ? unwind_image_limit(image, image->header, &low) : 0;
	struct cfi_bytes b = {(const uint8_t *)image->header, (const uint8_t *)limit, false};
	struct cfi_head head;

	if (!limit || !cfi_head_read(&b, image->header, &head) || !head.count)
		return 0;
	return cfi_head_search(&head, pc);
}

/* Reads what stands there. Returns false where it is no entry for pc. */
static bool read_entry(const struct unwind_image *image, uintptr_t at, uintptr_t pc, struct unwind_entry *entry,
		       struct cfi_common *common)
{
	uintptr_t low, limit = at ? unwind_image_limit(image, at, &low) : 0;

	if (!limit)
		return false;
	entry->section = (struct cfi_section){(const uint8_t *)low, (const uint8_t *)limit, low, image->header};
	common->at = NULL;
	return cfi_entry_read(&entry->section, (const uint8_t *)at, common, &entry->code) &&
	       cfi_entry_holds(&entry->code, pc);
}

bool unwind_tables_find(const struct unwind_image *image, uintptr_t pc, struct unwind_entry *entry, struct cfi_row *row)
{
	struct cfi_row remembered[STATES_MAX];
	struct cfi_states states = {remembered, STATES_MAX};
	struct cfi_common common;

	return read_entry(image, search(image, pc), pc, entry, &common) &&
	       cfi_run(&entry->section, &common, &entry->code, pc, &states, row);
}
