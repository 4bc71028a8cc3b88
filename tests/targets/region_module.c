/* A plug-in with a region of its own, which is loaded, called and unloaded again and again. */
#include <assay.h>

void call_the_plugin(void);

void call_the_plugin(void)
{
	ASSAY_SCOPE("plug-in");
}
