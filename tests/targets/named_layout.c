/* Planted functions for tests of names: static beside exported ones, inlined ones, aliases, a cold part, a copy for
 * constant arguments, calls through stubs. Compiled by the tests, in many layouts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile unsigned sink;

static inline unsigned innermost(unsigned x)
{
	return x * x + sink;
}

static inline unsigned between(unsigned x)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < x; i++)
		sum += innermost(i) ^ i;
	return sum;
}

__attribute__((noinline)) static unsigned hidden_hot(unsigned x)
{
	return between(x) + 3 * between(x + 1);
}

__attribute__((noinline, cold)) static void complain(const char *what)
{
	fprintf(stderr, "%s\n", what);
	abort();
}

__attribute__((noinline)) unsigned exported_neighbour(unsigned x)
{
	if (x == 0x7fffffff)
		complain("too large");
	return hidden_hot(x) ^ (unsigned)strlen(getenv("PATH") ? getenv("PATH") : "");
}

unsigned __exported_neighbour(unsigned) __attribute__((alias("exported_neighbour")));

__attribute__((noinline, section(".text_apart"))) unsigned far_away(unsigned x)
{
	sink += x;
	return between(x & 15);
}

int main(int argc, char **argv)
{
	char *end = argv[argc - 1];
	unsigned n = (unsigned)strtoul(end, &end, 0) % 1000;

	sink = exported_neighbour(n) + far_away(n) + __exported_neighbour(n / 2);
	printf("%u\n", sink);
	return 0;
}
