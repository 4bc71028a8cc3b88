/* truth_hidden SECONDS: calls a static function of a stripped library for so many CPU seconds. */
#include <stdlib.h>

#include "truth.h"

typedef void work(int64_t ns);
extern work *const hidden_table[];

int main(int argc, char **argv)
{
	hidden_table[0]((int64_t)(atof(argc > 1 ? argv[1] : "1") * 1e9));
	return 0;
}
