// The same program with its work at the bottom of 50 C++ frames.
#define DEEP
#include "sampler_target.c"
