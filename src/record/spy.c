/* Not written yet. */
#include "record/spy.h"
