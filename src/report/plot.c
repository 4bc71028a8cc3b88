#include "report/plot.h"

#include <string.h>

/* Hues of Okabe and Ito, which the common kinds of colour blindness leave apart; black is kept for text. */
static const struct canvas_colour hues[] = {
	{230, 159, 0, 255}, {86, 180, 233, 255}, {0, 158, 115, 255},   {204, 121, 167, 255},
	{0, 114, 178, 255}, {213, 94, 0, 255},	 {190, 175, 40, 255},
};

/* Each hue as it is, and darker and lighter: where two regions share a hue, lightness is left to tell them apart. */
static const double shades[] = {0, -0.28, -0.5, 0.25, 0.45};

const struct plot_kind *const plots[] = {
#define PLOT(name) &plot_##name,
#include "report/plots.def"
#undef PLOT
};

const size_t plot_count = sizeof plots / sizeof *plots;

const struct plot_kind *plot_find(const char *name)
{
	for (size_t i = 0; i < plot_count; i++)
		if (strcmp(plots[i]->name, name) == 0)
			return plots[i];
	return NULL;
}

/* FNV-1a, then mixed once more: its low bits alone follow the last letter of a name. The factor is one of many that
 * mix well; with it the usual names (main, solve, io, ...) have colours of their own. */
static uint64_t hash_of(const char *text)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3u;
	h = (h ^ (h >> 33)) * 0xb06de5501f8f3bdbu;
	return h ^ (h >> 29);
}

static uint8_t shaded(uint8_t value, double shade)
{
	return (uint8_t)(shade < 0 ? value * (1 + shade) : value + (255 - value) * shade);
}

struct canvas_colour plot_colour(const char *region)
{
	uint64_t h = hash_of(region);
	struct canvas_colour c = hues[h % (sizeof hues / sizeof *hues)];
	double shade = shades[(h >> 20) % (sizeof shades / sizeof *shades)];

	return (struct canvas_colour){shaded(c.r, shade), shaded(c.g, shade), shaded(c.b, shade), 255};
}
