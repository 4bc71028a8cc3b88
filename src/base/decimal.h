/* Doubles as decimals, digit by digit as Python prints and rounds them: for files that another tool reads or wrote. */
#ifndef ASSAY_BASE_DECIMAL_H
#define ASSAY_BASE_DECIMAL_H

struct decimal {
	char text[48];
};

/* Rounded to so many places, correctly from the exact binary value; a tie goes to the even digit. */
double decimal_round(double value, int places);

/* The fewest digits that read back as the same double: "0.1", "1234.5", "5.0", "1e+16", "1e-05". Other than finite:
 * "n/a". */
struct decimal decimal_shortest(double value);

/* The same with commas between thousands: "1,234.5". */
struct decimal decimal_grouped(double value);

#endif
