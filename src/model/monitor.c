/* Not written yet. */
#include "model/monitor.h"
