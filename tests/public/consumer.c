/* A program that uses assay.h as its users do. C99, C17, C++98 and C++20 compile it without a warning. Prints the
 * version, what assay_mark returned, and why. */
#include <assay.h>
#include <assay.h>

#include <stdio.h>

int main(void)
{
	int result = assay_mark("load");

	printf("%s %d %s\n", assay_version(), result, assay_last_error());
	return ASSAY_VERSION_MAJOR == 0 && ASSAY_VERSION_MINOR >= 1 ? 0 : 1;
}
