#include "judge/shares.h"

#include <math.h>

#define Z_MAX 39.0 /* beyond it no double holds the tail */

double shares_z(double alpha)
{
	double low = 0, high = Z_MAX;

	/* The tail only falls, so halving finds it to the last bit. */
	for (int i = 0; i < 80; i++) {
		double middle = (low + high) / 2;

		if (erfc(middle / M_SQRT2) > alpha)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}

struct share_interval shares_interval(double share, double n, double z)
{
	double centre, half, spread = z * z;

	if (!(n > 0))
		return (struct share_interval){0, 1};
	centre = (share + spread / (2 * n)) / (1 + spread / n);
	half = z / (1 + spread / n) * sqrt(share * (1 - share) / n + spread / (4 * n * n));
	/* Rounding must not put the share itself outside, at 0 and at 1. */
	return (struct share_interval){fmin(share, fmax(0, centre - half)), fmax(share, fmin(1, centre + half))};
}

struct share_interval shares_difference(double a, struct share_interval of_a, double b, struct share_interval of_b)
{
	return (struct share_interval){
		b - a - hypot(b - of_b.low, of_a.high - a),
		b - a + hypot(of_b.high - b, a - of_a.low),
	};
}
