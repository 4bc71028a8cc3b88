/* Not written yet. */
#include "judge/timing.h"
