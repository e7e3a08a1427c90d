/* tukey.h - Tukey's hh distributions, as tf.Transform's gaussianization uses them.
 *
 * They turn a standard normal u into u * exp(h * u^2), with one h below zero and another above.
 */
#ifndef CONTENT_NUMBERS_TUKEY_H
#define CONTENT_NUMBERS_TUKEY_H

/* u of a value. */
double tukey_inverse(double value, double left, double right);

/* The h of the distribution with this L-skewness and L-kurtosis; 0 and 0 where the tails are not
 * longer than a Gaussian's. */
void tukey_fit(double skewness, double kurtosis, double *ret_left, double *ret_right);

/* Its first two L-moments. */
void tukey_moments(double left, double right, double *ret_mean, double *ret_scale);

#endif
