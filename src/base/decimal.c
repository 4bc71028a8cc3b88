#include "base/decimal.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 17 /* enough for any double */
#define DIGITS_SURE 15 /* any so long come back from a double */
#define WHOLE_SURE  1e15
#define NUMBER_MAX  40

double decimal_round(double value, int places)
{
	char text[400]; /* 1.8e308 has 309 digits before the point */

	if (!isfinite(value))
		return value;
	snprintf(text, sizeof text, "%.*f", places, value);
	return strtod(text, NULL);
}

/* A value as a whole number, with so many of its digits behind the point. */
struct digits {
	uint64_t whole;
	int places;
};

static struct digits without_zeros(uint64_t whole, int places)
{
	for (; places > 0 && whole % 10 == 0; places--)
		whole /= 10;
	return (struct digits){whole, whole > 0 ? places : 0};
}

/* Whether a value has at most 15 digits; false with *ret_sure where it certainly has more. Both a whole number below
 * 10^15 and these powers of ten are exact, so that their quotient is the double that is nearest to those digits; and of
 * so few digits no two read back as one double. */
static bool has_few_digits(double value, struct digits *ret, bool *ret_sure)
{
	static const double powers[] = {1,    1e1,  1e2,  1e3,	1e4,  1e5,  1e6,  1e7,	1e8,  1e9,  1e10,
					1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21};
	const int count = sizeof powers / sizeof *powers;
	int places = 0;

	/* In steps of three, since most are whole milli-, micro- or nanoseconds; then those between. */
	while (places < count && fabs(value) * powers[places] < WHOLE_SURE) {
		double whole = nearbyint(fabs(value) * powers[places]);

		if (whole / powers[places] == fabs(value)) {
			*ret = without_zeros((uint64_t)whole, places);
			return true;
		}
		places += 3;
	}
	*ret_sure = places > 0 && places < count;
	for (int i = places - 1; *ret_sure && i > places - 3 && i > 0; i--) {
		double whole = nearbyint(fabs(value) * powers[i]);

		if (whole < WHOLE_SURE && whole / powers[i] == fabs(value)) {
			*ret = without_zeros((uint64_t)whole, i);
			return true;
		}
	}
	return false;
}

/* The fewest significant digits, found by trying. Up to 15 are always read back as they were, but of the smallest
 * doubles, which have fewer bits: so many are tried first, and of these the zeros at their end are not needed. */
static int count_digits(double value, bool many, char text[static NUMBER_MAX], int *ret_exponent)
{
	int digits = many ? DIGITS_SURE + 1 : value == 0 || isnormal(value) ? DIGITS_SURE : 1;

	do
		snprintf(text, NUMBER_MAX, "%.*e", digits - 1, value);
	while (digits < DIGITS_MAX && strtod(text, NULL) != value && ++digits);
	const char *e = strchr(text, 'e');

	*ret_exponent = atoi(e + 1);
	for (const char *last = e - 1; digits > 1 && *last == '0'; last--)
		digits--;
	return digits;
}

/* What decimal_shortest writes below 10^16. */
static void write_digits(char *to, bool negative, struct digits d)
{
	char digits[DIGITS_MAX + 1];
	int count = 0, exponent;

	for (; d.whole > 0 || count == 0; d.whole /= 10)
		digits[count++] = (char)('0' + d.whole % 10); /* the last first */
	exponent = count - 1 - d.places;
	if (negative)
		*to++ = '-';
	for (int i = exponent; exponent >= -4 && i < 0; i++) {
		*to++ = '0';
		if (i == exponent)
			*to++ = '.';
	}
	for (int i = count - 1; i >= 0; i--) {
		*to++ = digits[i];
		if (exponent < -4 ? i == count - 1 && i > 0 : i == d.places && i > 0)
			*to++ = '.';
	}
	*to = '\0';
	if (exponent < -4)
		snprintf(to, sizeof "e-999", "e-%02d", -exponent);
	else if (d.places == 0)
		strcpy(to, ".0");
}

/* Of a text of printf's %e. */
static struct digits digits_of(const char *text, int exponent)
{
	uint64_t whole = 0;
	int count = 0;

	for (; *text != 'e'; text++)
		if (*text >= '0' && *text <= '9') {
			whole = whole * 10 + (uint64_t)(*text - '0');
			count++;
		}
	return without_zeros(whole, count - 1 - exponent);
}

struct decimal decimal_shortest(double value)
{
	char text[NUMBER_MAX];
	struct decimal d;
	struct digits few;
	int exponent, digits;
	bool many = false;

	if (!isfinite(value)) {
		strcpy(d.text, "n/a");
		return d;
	}
	if (has_few_digits(value, &few, &many)) {
		write_digits(d.text, signbit(value), few);
		return d;
	}
	digits = count_digits(value, many, text, &exponent);
	if (exponent < -4 || exponent >= 16)
		snprintf(d.text, sizeof d.text, "%.*e", digits - 1, value);
	else if (digits - 1 <= exponent)
		snprintf(d.text, sizeof d.text, "%.1f", value);
	else
		write_digits(d.text, value < 0, digits_of(text, exponent));
	return d;
}

struct decimal decimal_grouped(double value)
{
	struct decimal plain = decimal_shortest(value), d;
	size_t sign = plain.text[0] == '-', whole = strspn(plain.text + sign, "0123456789"), to = 0;

	for (size_t i = 0; plain.text[i] && to + 2 < sizeof d.text; i++) {
		size_t left = sign + whole - i; /* digits before the point, from here on */

		if (i > sign && i < sign + whole && left % 3 == 0)
			d.text[to++] = ',';
		d.text[to++] = plain.text[i];
	}
	d.text[to] = '\0';
	return d;
}
