/* Not written yet. */
#include <assay.h>
