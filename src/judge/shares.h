/* Intervals of shares that were counted: of one, of the difference of two. Pure; docs/statistics.md has the formulas.
 *
 * Counts may be fractions: effective numbers of samples whose weights differ. */
#ifndef ASSAY_JUDGE_SHARES_H
#define ASSAY_JUDGE_SHARES_H

/* Under so many samples a share is not worth an interval. */
#define SHARES_LEAST 30

struct share_interval {
	double low, high;
};

/* The z beyond which a normal variable lies with probability alpha, both sides together: 1.96 at 0.05. */
double shares_z(double alpha);

/* Wilson's score interval of a share of n samples (E. B. Wilson 1927); [0, 1] where n is 0. */
struct share_interval shares_interval(double share, double n, double z);

/* Newcombe's interval of b - a from the intervals of both (Statistics in Medicine 17, 1998, method 10). */
struct share_interval shares_difference(double a, struct share_interval of_a, double b, struct share_interval of_b);

#endif
