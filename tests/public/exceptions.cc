// A region's scope ends with an exception, and with each frame that it passes; a block that is measured, too.
#include <assay.h>

#include <cstdio>
#include <stdexcept>

static void thrower(int depth)
{
	ASSAY_SCOPE("thrower");
	if (depth == 0)
		throw std::runtime_error("thrown");
	thrower(depth - 1);
}

static bool measure_until_thrown()
{
	assay_timing timing;
	int made = 0;

	try {
		ASSAY_MEASURE(&timing, NULL)
		{
			if (++made == 120)
				throw std::runtime_error("thrown");
		}
	} catch (const std::runtime_error &) {
		return timing.repeat == 2 && timing.number == 50;
	}
	return false;
}

int main()
{
	ASSAY_SCOPE("main");
	for (int i = 0; i < 10; i++) {
		try {
			thrower(4);
		} catch (const std::runtime_error &) {
			ASSAY_SCOPE("caught");
		}
	}
	return measure_until_thrown() ? 0 : 1;
}
