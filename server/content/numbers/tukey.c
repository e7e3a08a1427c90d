/* tukey.c - the arithmetic of Tukey's hh distributions: Headrick and Pant, "Characterizing Tukey h
 * and hh-Distributions through L-Moments and the L-Correlation", 2012. The search takes the steps
 * of tf.Transform's gaussianization, since the point where it stops decides the digits. */
#include "content/numbers/tukey.h"

#include <math.h>
#include <stdbool.h>

static const double PI = 3.14159265358979323846;
/* The L-kurtosis of the normal distribution. Less than that means tails too short for an hh
 * distribution. */
static const double GAUSSIAN_KURTOSIS = 0.1226017;

/* Lambert's W for x > 0: the w with w * exp(w) = x. Newton's method, from a first guess for small,
 * middle and large x; eight steps reach double precision. */
static double
lambert_w(double x)
{
    double slope = (exp(1.0) - 1.0) / (exp(2.0) - 1.0);
    double w = x;

    if (x >= exp(1.0))
        w = log(x) + (1.0 / log(x) - 1.0) * log(log(x));
    else if (x >= exp(-1.0))
        w = slope * x + exp(-1.0) * (1.0 - slope);
    for (int i = 0; i < 8; i++) {
        double power = exp(w);

        w -= (w * power - x) / (power + w * power);
    }
    return w;
}

/* Undo z * exp(h * z^2 / 2) for z >= 0. Near 0 the map is the identity to double precision, and the
 * quotient below would lose it. */
static double
inverse_of_side(double value, double h)
{
    double x = h * value * value;

    return x < 1e-7 || isnan(x) ? value : sqrt(lambert_w(x) / h);
}

double
tukey_inverse(double value, double left, double right)
{
    return value < 0 ? -inverse_of_side(-value, left) : inverse_of_side(value, right);
}

void
tukey_moments(double left, double right, double *ret_mean, double *ret_scale)
{
    double part = 1.0 / sqrt(2.0 * PI);
    double l = sqrt(2.0 - left), r = sqrt(2.0 - right);

    *ret_mean = part * (1.0 / (left - 1.0) + 1.0 / (1.0 - right));
    *ret_scale = part * (l + r - left * l - right * r) /
                 ((left - 1.0) * (right - 1.0) * sqrt((left - 2.0) * (right - 2.0)));
}

static double
skewness_part(double a, double b)
{
    return 12.0 * sqrt(2.0 - a) * (b - 2.0) * (b - 1.0) * atan(1.0 / sqrt(2.0 - a));
}

static double
side(double h)
{
    return h * sqrt(2.0 - h) - sqrt(2.0 - h);
}

/* L-skewness of the distribution with left h `l` and right h `r`. */
static double
skewness_of(double l, double r)
{
    return (skewness_part(l, r) - PI * (l - r) * (l - 2.0) * (r - 2.0) - skewness_part(r, l)) /
           (2.0 * PI * sqrt((l - 2.0) * (r - 2.0)) * (side(l) + side(r)));
}

/* L-kurtosis of the distribution with left h `l` and right h `r`. */
static double
kurtosis_of(double l, double r)
{
    double root = sqrt((l - 4.0) * (l - 2.0) * (l - 1.0) * (r - 2.0));
    double short_root = sqrt((l - 4.0) * (l - 1.0));
    double first = r * root - 2.0 * short_root;
    double second = l * (l - 3.0) * short_root + root;
    double third = 30.0 * (l - 1.0) * sqrt((l - 4.0) * (l - 2.0) * (r - 2.0) / (l - 1.0)) *
                   (r - 1.0) * atan(sqrt(1.0 + 2.0 / (l - 4.0)));
    double fourth = 30.0 * (l - 2.0) * short_root * (l - 1.0) * atan(sqrt(1.0 + 2.0 / (r - 4.0)));

    return (6.0 * PI * (first - second) + third + fourth) /
           (PI * sqrt((4.0 - l) * (2.0 - l) * (1.0 - l)) * (side(l) + side(r)));
}

/* The search's state: the right h, and by how much the left one is less. */
struct target {
    double skewness, kurtosis;
    double h, difference;
};

static double
skewness_error(const struct target *target, double difference)
{
    return skewness_of(target->h - difference, target->h) - target->skewness;
}

static double
kurtosis_error(const struct target *target, double h)
{
    return kurtosis_of(h - target->difference, h) - target->kurtosis;
}

/* Halve [low, high] at most eleven times. tf.Transform stops there too, so more steps would give
 * other digits. */
static void
bisect(const struct target *target, double (*error)(const struct target *target, double value),
       double *low, double *high)
{
    for (int i = 0; i <= 10; i++) {
        double middle = (*low + *high) / 2.0;
        double difference = error(target, middle);

        if (difference < 0.0)
            *low = middle;
        else
            *high = middle;
        if (fabs(difference) < 1e-6 || *high - *low < 1e-6)
            return;
    }
}

/* One round: the difference at this h, then h at that difference, each bounded from above and
 * below. */
static void
improve(struct target *target, double least[2], double most[2])
{
    double low = least[1], high = most[1];
    bool found = skewness_error(target, most[1]) > 0.0;

    if (found) {
        bisect(target, skewness_error, &low, &high);
        target->difference = most[1] = high;
    } else {
        target->difference = least[1] = most[1];
    }
    low = least[0];
    high = most[0];
    bisect(target, kurtosis_error, &low, &high);
    if (!found) {
        target->h = least[0] = low;
        most[1] = low;
        return;
    }
    target->h = most[0] = high;
    low = least[1];
    high = most[1];
    bisect(target, skewness_error, &low, &high);
    target->difference = least[1] = low;
    low = least[0];
    high = most[0];
    bisect(target, kurtosis_error, &low, &high);
    target->h = least[0] = low;
}

void
tukey_fit(double skewness, double kurtosis, double *ret_left, double *ret_right)
{
    struct target target = { .skewness = fabs(skewness), .kurtosis = fmin(kurtosis, 1.0 - 1e-5) };
    double least[2], most[2], left, right;

    *ret_left = *ret_right = 0;
    /* Negated, so that NaN counts as no tails. */
    if (!(kurtosis >= GAUSSIAN_KURTOSIS))
        return;
    target.h = 3.0 - 1.0 / cos(PI / 15.0 * (target.kurtosis - 6.0));
    least[0] = target.h;
    least[1] = 0.0;
    most[0] = 1.0 - 1e-7;
    most[1] = target.h;
    for (int i = 0; i < 20; i++) {
        struct target before = target;

        improve(&target, least, most);
        if ((fabs(skewness_error(&target, target.difference)) < 1e-6 &&
             fabs(kurtosis_error(&target, target.h)) < 1e-6) ||
            (i > 0 && fabs(target.h - before.h) < 1e-6 &&
             fabs(target.difference - before.difference) < 1e-6))
            break;
    }
    left = target.h - target.difference;
    right = target.h;
    /* The fit assumed the longer tail on the right: mirror it back for negative skewness. */
    *ret_left = skewness < 0 ? right : left;
    *ret_right = skewness < 0 ? left : right;
}
