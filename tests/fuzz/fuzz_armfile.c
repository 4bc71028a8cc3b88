/* Any bytes as a run.json, as floors of noise and as a matrix: each is taken or refused with a sentence, what is taken
 * can be a figure, and comparing it with itself finds no difference. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "judge/compare.h"
#include "store/armfile.h"
#include "store/noisefile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

static void try_run(const json_t *root)
{
	CLEANUP(comparison_release) struct comparison c = {0};
	struct compare_options options = {.confidence = 0.95, .looks = 1};
	struct metric_set metrics;
	struct error err = {""};
	struct arms arms;
	int result;

	arms_init(&arms);
	require(metric_set_init(&metrics, NULL) == 0);
	result = armfile_take(root, "x", &metrics, &arms, &err);
	require((result < 0) == (err.text[0] != '\0') && arms.count == (result == 0));
	for (size_t i = 0; result == 0 && i < metrics.count; i++)
		require(isnan(arm_value(&arms.items[0], i)) || arm_value(&arms.items[0], i) >= 0);
	require(compare(&metrics, &arms, &arms, &options, &c, NULL) == 0);
	require(c.overall == OVERALL_NEUTRAL);
	metric_set_release(&metrics);
	arms_release(&arms);
}

static void try_matrix(const json_t *root)
{
	CLEANUP(warnings_release) struct warnings notes;
	CLEANUP(json_cleanup) json_t *floors = NULL;
	struct error err = {""};

	warnings_init(&notes);
	floors = noisefile_from_matrix(root, "x", &notes, &err);
	require((floors == NULL) == (err.text[0] != '\0'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(json_cleanup) json_t *root = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);

	if (!root)
		return 0;
	try_run(root);
	try_matrix(root);
	return 0;
}
