#include "base/decimal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 17 /* enough for any double */
#define DIGITS_SURE 15 /* any so long come back from a double */

double decimal_round(double value, int places)
{
	char text[400]; /* 1.8e308 has 309 digits before the point */

	if (!isfinite(value))
		return value;
	snprintf(text, sizeof text, "%.*f", places, value);
	return strtod(text, NULL);
}

/* The fewest significant digits, and the decimal exponent of the first of them. Up to 15 digits are always read back as
 * they were, but of the smallest doubles, which have fewer bits: so many are tried first, and of these the zeros at
 * their end are not needed. */
static int count_digits(double value, int *ret_exponent)
{
	char text[40];
	int digits = value == 0 || isnormal(value) ? DIGITS_SURE : 1;

	do
		snprintf(text, sizeof text, "%.*e", digits - 1, value);
	while (strtod(text, NULL) != value && ++digits <= DIGITS_MAX);
	const char *e = strchr(text, 'e');

	*ret_exponent = atoi(e + 1);
	for (const char *last = e - 1; digits > 1 && *last == '0'; last--)
		digits--;
	return digits;
}

struct decimal decimal_shortest(double value)
{
	struct decimal d;
	int exponent, digits;

	if (!isfinite(value)) {
		strcpy(d.text, "n/a");
		return d;
	}
	digits = count_digits(value, &exponent);
	if (exponent < -4 || exponent >= 16)
		snprintf(d.text, sizeof d.text, "%.*e", digits - 1, value);
	else
		snprintf(d.text, sizeof d.text, "%.*f", digits - 1 > exponent ? digits - 1 - exponent : 1, value);
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
