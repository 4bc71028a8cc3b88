/* Regions as users of assay.h write them. C99, C17, C++98 and C++20 compile it without a warning, also with
 * ASSAY_DISABLE, which then evaluates no argument: the program prints how often that happened, and what is recorded. */
#include <assay.h>

#include <stdio.h>

static int evaluated;

static const char *counted(const char *name)
{
	evaluated++;
	return name;
}

static struct assay_region *counted_region(struct assay_region *region)
{
	evaluated++;
	return region;
}

static int leave_early(int way)
{
	ASSAY_SCOPE("outer");
	int i;

	for (i = 0; i < 3; i++) {
		ASSAY_SCOPE_TAGGED("inner", "solver=cg");
		if (way == 0)
			return i;
		if (way == 1)
			break;
		if (way == 2)
			goto out;
	}
out:
	return i;
}

static void two_in_a_line(void)
{
	ASSAY_SCOPE("left"); ASSAY_SCOPE("right"); { ASSAY_SCOPE("nested"); }
}

int main(void)
{
	static struct assay_region plain = ASSAY_REGION("plain");
	static struct assay_region tagged = ASSAY_REGION_TAGGED("tagged", "key=value");
	const char *only_named = "made at run time";
	assay_token token = assay_token_begin(&tagged);
	int way;

	assay_region_begin(counted_region(&plain));
	for (way = 0; way < 4; way++)
		leave_early(way);
	two_in_a_line();
	{
		ASSAY_SCOPE_NAMED(counted(only_named));
	}
	assay_region_begin(assay_region_named(counted("found")));
	assay_region_end(assay_region_named("found"));
	assay_region_end(&plain);
	assay_token_end(token);
	assay_set_rank(0, 1);
	assay_set_metadata("label", "public");
	assay_set_clock_offset(0, 0);
	assay_mark("end");
	assay_flush();
	printf("%d %d %d\n", evaluated, (int)assay_get_mode(), assay_directory() != 0);
	return assay_finalize();
}
