/* What the rules say of a made-up run, and what a test expects of it. Include it after cmocka.h. */
#ifndef ASSAY_TESTS_JUDGED_H
#define ASSAY_TESTS_JUDGED_H

#include "judge/limits.h"
#include "made_up.h"

static inline const struct limit *judged(struct run *r)
{
	struct error err;

	assert_int_equal(limits_judge(r, &err), 0);
	assert_int_equal(r->limit_count, r->phases.count);
	assert_true(strlen(r->limits[0].why) > 20);
	return &r->limits[0];
}

static inline void expect(struct run *r, enum limit_kind kind, const char *detail, enum limit_confidence confidence,
		   const char *says)
{
	const struct limit *l = judged(r);

	if (l->kind != kind || (detail != l->detail && (!detail || !l->detail || strcmp(detail, l->detail) != 0)) ||
	    l->confidence != confidence || !strstr(l->why, says))
		fail_msg("%s, %s, %s: %s", limit_kind_name(l->kind), l->detail ? l->detail : "-",
			 limit_confidence_name(l->confidence), l->why);
	run_release(r);
}

#endif
