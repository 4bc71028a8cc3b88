/* One of two libraries that are alike, but for the name of the function that works. */
#include "sampled.h"

#define JOIN(a, b) a##b
#define NAMED(number) JOIN(work_of_module_, number)

void NAMED(NUMBER)(long ms);
void work(long ms);

void NAMED(NUMBER)(long ms)
{
	sampled_burn(ms);
}

void work(long ms)
{
	NAMED(NUMBER)(ms);
	sampled_sink = NUMBER;
}
