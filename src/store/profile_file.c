#include "store/profile_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fs.h"
#include "base/json.h"

#define SCHEMA "assay-profile-1"
#define FILE_BYTES_MAX ((size_t)1 << 30)
#define FRAMES_MAX 256u /* of one location: functions inlined into each other; outer ones past it are left out */

static void build_id_text(const struct profile_module *m, char text[65])
{
	text[0] = '\0';
	for (size_t i = 0; i < m->build_id_length && i < sizeof m->build_id; i++)
		snprintf(text + 2 * i, 3, "%02x", m->build_id[i]);
}

static json_t *text_or_null(const char *text)
{
	return text ? json_text(text, strlen(text)) : json_null();
}

/* [path, name shown, build-id, note or null], in the order of the modules in the segment. */
static json_t *modules_json(const struct profile *p)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < p->module_count; i++) {
		const struct profile_module *m = &p->modules[i];
		json_t *row = json_array();
		char id[65];

		build_id_text(m, id);
		json_array_append_new(row, text_or_null(m->path));
		json_array_append_new(row, text_or_null(m->name));
		json_array_append_new(row, json_string(id));
		json_array_append_new(row, text_or_null(m->note));
		json_array_append_new(rows, row);
	}
	return rows;
}

/* The file's number in `files`, where each stands once; -1: none. */
static json_int_t file_number(json_t *numbers, json_t *files, const char *file)
{
	CLEANUP(json_cleanup) json_t *text = text_or_null(file);
	const char *key = json_string_value(text);
	json_t *known = key ? json_object_get(numbers, key) : NULL;

	if (known)
		return json_integer_value(known);
	if (!key || json_array_append(files, text) < 0)
		return -1;
	json_object_set_new(numbers, key, json_integer((json_int_t)json_array_size(files) - 1));
	return (json_int_t)json_array_size(files) - 1;
}

/* [module, known, name, file, line]. */
static json_t *functions_json(const struct profile *p, json_t *files)
{
	CLEANUP(json_cleanup) json_t *numbers = json_object();
	json_t *rows = json_array();

	for (size_t i = 0; i < p->function_count; i++) {
		const struct profile_function *f = &p->functions[i];
		json_t *row = json_array();

		json_array_append_new(row, json_integer(f->module));
		json_array_append_new(row, json_integer(f->known));
		json_array_append_new(row, text_or_null(f->name));
		json_array_append_new(row, json_integer(file_number(numbers, files, f->file)));
		json_array_append_new(row, json_integer(f->line));
		json_array_append_new(rows, row);
	}
	return rows;
}

/* One flat list of numbers, since there may be very many: module, address, how many frames, then function and line of
 * each. By hand: an address may have all 64 bits, and is hexadecimal text then. */
static void put_locations(const struct profile *p, struct buf *out)
{
	bool first = true;

	for (size_t i = 0; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];
		uint32_t count = l->count < FRAMES_MAX ? l->count : FRAMES_MAX;

		if (!count)
			continue;
		buf_printf(out, first ? "%" PRIu32 : ",\n%" PRIu32, l->module);
		first = false;
		buf_printf(out, l->address > INT64_MAX ? ",\"0x%" PRIx64 "\"" : ",%" PRIu64, l->address);
		buf_printf(out, ",%" PRIu32, count);
		for (uint32_t k = 0; k < count; k++)
			buf_printf(out, ",%" PRIu32 ",%" PRIu32, p->frames[l->first + k].function,
				   p->frames[l->first + k].line);
	}
}

/* One row per line, for those who look at it or compare two. */
static void put_rows(struct buf *out, const char *key, const json_t *rows)
{
	size_t i;
	json_t *row;

	buf_printf(out, ",\n\"%s\":[", key);
	json_array_foreach(rows, i, row) {
		CLEANUP(free_cleanup) char *text = json_dumps(row, JSON_COMPACT | JSON_ENCODE_ANY);

		if (!text) {
			out->failed = true;
			return;
		}
		buf_printf(out, "%s%s", i ? ",\n" : "\n", text);
	}
	buf_puts(out, "]");
}

int profile_file_write(const char *path, const struct profile *p, struct error *err)
{
	CLEANUP(buf_release) struct buf text;
	CLEANUP(json_cleanup) json_t *files = json_array();
	CLEANUP(json_cleanup) json_t *modules = modules_json(p);
	CLEANUP(json_cleanup) json_t *functions = functions_json(p, files);

	buf_init(&text);
	if (!files || !modules || !functions)
		return error_set(err, "%s: out of memory", path);
	buf_printf(&text, "{\"schema\":\"" SCHEMA "\",\"hz\":%u", p->hz);
	put_rows(&text, "modules", modules);
	put_rows(&text, "files", files);
	put_rows(&text, "functions", functions);
	buf_puts(&text, ",\n\"locations\":[\n");
	put_locations(p, &text);
	buf_puts(&text, "]}\n");
	if (text.failed)
		return error_set(err, "%s: out of memory", path);
	return fs_write_file(path, text.text, text.length, err);
}

/* While the file is read. */
struct reading {
	const char *path;
	struct profile *p;
	const json_t *files;
	uint32_t *functions; /* numbers of its functions in *p; owned */
	size_t function_count;
	uint32_t *sorted; /* locations of *p by module and address, made where they are in another order; owned */
};

/* Whether the file is of the run whose samples these are. */
static int read_modules(struct reading *r, const json_t *rows, struct error *err)
{
	if (json_array_size(rows) != r->p->module_count)
		return error_set(err, "%s: names %zu modules where the samples have %zu: of another run", r->path,
				 json_array_size(rows), r->p->module_count);
	for (size_t i = 0; i < r->p->module_count; i++) {
		struct profile_module *m = &r->p->modules[i];
		CLEANUP(json_cleanup) json_t *path = json_text(m->path, strlen(m->path));
		const json_t *row = json_array_get(rows, i);
		const char *note = json_string_value(json_array_get(row, 3));
		char id[65];

		build_id_text(m, id);
		if (!json_equal(json_array_get(row, 0), path) || !json_is_string(json_array_get(row, 2)) ||
		    strcmp(json_string_value(json_array_get(row, 2)), id) != 0)
			return error_set(err, "%s: module %zu is another than that of the samples: of another run",
					 r->path, i);
		if (!note)
			continue;
		free(m->note);
		m->note = strdup(note);
		if (!m->note)
			return error_set(err, "%s: out of memory", r->path);
	}
	return 0;
}

/* A number of a list, from 0 to `limit`. */
static bool number_at(const json_t *list, size_t at, uint64_t limit, uint32_t *ret)
{
	const json_t *value = json_array_get(list, at);

	if (!json_is_integer(value) || json_integer_value(value) < 0 || (uint64_t)json_integer_value(value) > limit)
		return false;
	*ret = (uint32_t)json_integer_value(value);
	return true;
}

static int read_function(struct reading *r, const json_t *row, size_t number, struct error *err)
{
	const char *name = json_string_value(json_array_get(row, 2)), *file = NULL;
	uint32_t module, known, line, at;

	if (!number_at(row, 0, UINT32_MAX, &module) || module >= r->p->module_count ||
	    !number_at(row, 1, 1, &known) || !name || !number_at(row, 4, UINT32_MAX, &line))
		return error_set(err, "%s: damaged: function %zu", r->path, number);
	if (number_at(row, 3, UINT32_MAX, &at))
		file = json_string_value(json_array_get(r->files, at));
	return profile_add_function(r->p, module, known, name, file, line, &r->functions[number], err);
}

static int read_functions(struct reading *r, const json_t *rows, struct error *err)
{
	size_t i;
	json_t *row;

	r->function_count = json_array_size(rows);
	r->functions = calloc(r->function_count + 1, sizeof *r->functions);
	if (!r->functions)
		return error_set(err, "%s: out of memory", r->path);
	json_array_foreach(rows, i, row)
		if (read_function(r, row, i, err) < 0)
			return -1;
	return 0;
}

static int compare_location(const struct profile_location *a, uint32_t module, uint64_t address)
{
	if (a->module != module)
		return a->module < module ? -1 : 1;
	return a->address < address ? -1 : a->address > address;
}

static int by_place(const void *a, const void *b, void *locations)
{
	const struct profile_location *all = locations, *second = &all[*(const uint32_t *)b];

	return compare_location(&all[*(const uint32_t *)a], second->module, second->address);
}

static int sort_locations(struct reading *r, struct error *err)
{
	r->sorted = calloc(r->p->location_count + 1, sizeof *r->sorted);
	if (!r->sorted)
		return error_set(err, "%s: out of memory", r->path);
	for (size_t i = 0; i < r->p->location_count; i++)
		r->sorted[i] = (uint32_t)i;
	qsort_r(r->sorted, r->p->location_count, sizeof *r->sorted, by_place, r->p->locations);
	return 0;
}

/* The location's number in *p, or PROFILE_NONE. `guess`: where it is when the file has all of them. */
static int find_location(struct reading *r, size_t guess, uint32_t module, uint64_t address, uint32_t *ret,
			 struct error *err)
{
	const struct profile *p = r->p;
	size_t low = 0, high = p->location_count;

	*ret = PROFILE_NONE;
	if (guess < p->location_count && compare_location(&p->locations[guess], module, address) == 0) {
		*ret = (uint32_t)guess;
		return 0;
	}
	if (!r->sorted && sort_locations(r, err) < 0)
		return -1;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = compare_location(&p->locations[r->sorted[middle]], module, address);

		if (order == 0) {
			*ret = r->sorted[middle];
			return 0;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return 0;
}

static bool address_of(const json_t *value, uint64_t *ret)
{
	const char *text = json_string_value(value);
	char *end;

	if (json_is_integer(value) && json_integer_value(value) >= 0) {
		*ret = (uint64_t)json_integer_value(value);
		return true;
	}
	if (!text || strncmp(text, "0x", 2) != 0)
		return false;
	*ret = strtoull(text + 2, &end, 16);
	return end != text + 2 && *end == '\0';
}

/* The location at `at` of the flat list; returns how many items it took, or -1. */
static int read_location(struct reading *r, const json_t *list, size_t at, size_t number, struct error *err)
{
	struct profile_frame frames[FRAMES_MAX];
	uint32_t module, count, location;
	uint64_t address;

	if (!number_at(list, at, UINT32_MAX, &module) || !address_of(json_array_get(list, at + 1), &address) ||
	    !number_at(list, at + 2, FRAMES_MAX, &count))
		return error_set(err, "%s: damaged: location %zu", r->path, number);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t function;

		if (!number_at(list, at + 3 + 2 * i, UINT32_MAX, &function) || function >= r->function_count ||
		    !number_at(list, at + 4 + 2 * i, UINT32_MAX, &frames[i].line))
			return error_set(err, "%s: damaged: location %zu", r->path, number);
		frames[i].function = r->functions[function];
	}
	if (find_location(r, number, module, address, &location, err) < 0)
		return -1;
	if (count && location != PROFILE_NONE && r->p->locations[location].count == 0 &&
	    profile_set_frames(r->p, location, frames, count, err) < 0)
		return -1;
	return (int)(3 + 2 * count);
}

static int read_parts(struct reading *r, const json_t *root, struct error *err)
{
	const json_t *list = json_object_get(root, "locations");
	size_t at = 0, number = 0;

	r->files = json_object_get(root, "files");
	if (read_modules(r, json_object_get(root, "modules"), err) < 0 ||
	    read_functions(r, json_object_get(root, "functions"), err) < 0)
		return -1;
	while (at < json_array_size(list)) {
		int took = read_location(r, list, at, number++, err);

		if (took < 0)
			return -1;
		at += (size_t)took;
	}
	return 0;
}

int profile_file_read(const char *path, struct profile *p, struct error *err)
{
	CLEANUP(buf_release) struct buf text;
	CLEANUP(json_cleanup) json_t *root = NULL;
	struct reading r = {.path = path, .p = p};
	const char *schema;
	int failed;

	buf_init(&text);
	if (fs_read_file(path, FILE_BYTES_MAX, &text, err) < 0)
		return -1;
	root = json_read_text(path, text.text, text.length, err);
	if (!root)
		return -1;
	schema = json_get_text(root, "schema", NULL);
	if (!schema || strcmp(schema, SCHEMA) != 0)
		return error_set(err, "%s: not a file of names of the schema " SCHEMA, path);
	failed = read_parts(&r, root, err);
	free(r.functions);
	free(r.sorted);
	return failed;
}
