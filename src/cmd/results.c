#include "cmd/results.h"

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/json.h"
#include "ingest/foreign.h"
#include "store/armfile.h"

#define FILE_MAX ((size_t)64 << 20)

int results_read(const char *path, const char *no_other, struct metric_set *metrics, struct arms *arms,
		 bool *ret_foreign, struct error *err)
{
	CLEANUP(buf_release) struct buf text;
	CLEANUP(json_cleanup) json_t *root = NULL;
	const struct foreign *foreign;

	buf_init(&text);
	if (fs_read_file(path, FILE_MAX, &text, err) < 0)
		return -1;
	foreign = foreign_of(text.text, text.length);
	if (foreign) {
		if (ret_foreign)
			*ret_foreign = true;
		return foreign->read(text.text, text.length, path, metrics, arms, err);
	}
	root = json_read_text(path, text.text, text.length, err);
	if (!root)
		return -1;
	/* A run of ours or of the reference tool has a status; another tool's results have none. */
	if (!json_is_string(json_object_get(root, "status")))
		return error_set(err,
				 "%s: it is no %srun.json (it has no \"status\"), and no other tool's results that are "
				 "known",
				 path, no_other);
	return armfile_take(root, path, metrics, arms, err);
}
