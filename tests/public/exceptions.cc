// A region's scope ends with an exception, and with each frame that it passes.
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
	return 0;
}
