/* information.c - mutual information of a term and a label, not divided by the number of rows.
 *
 * Vinh, Epps and Bailey, "Information theoretic measures for clusterings comparison", 2009, gives
 * the value expected by chance.
 */
#include "learn/analyzers/information.h"

#include <math.h>

/* Shares are kept away from 0 and 1, where the logarithm is infinite. */
static const double SHARE_MARGIN = 1e-6;

static double
partial(double both, double term, double label, double total)
{
    return both == 0 ? 0 : both * (log2(both) + log2(total) - (log2(term) + log2(label)));
}

/* The value expected by chance for a term and a label that are independent: a sum over the
 * hypergeometric distribution. */
static double
expected(double total, double term, double label)
{
    double factor = log2(total) - log2(term) - log2(label);
    double fixed =
        /* Factorials overflow, so their logarithms are added. */
        lgamma(term + 1) + lgamma(label + 1) + lgamma(total - term + 1) + lgamma(total - label + 1);
    double sum = 0, sum_of_shares = 0;
    int64_t begin = (int64_t)round(fmax(0, term + label - total));
    int64_t end = (int64_t)round(fmin(term, label));

    if (term == 0 || label == 0)
        return 0;
    for (int64_t both = begin; both <= end; both++) {
        double n = (double)both;
        double share = exp(fixed - (lgamma(total + 1) + lgamma(n + 1) + lgamma(term - n + 1) +
                                    lgamma(label - n + 1) + lgamma(total - term - label + n + 1)));

        if (both != 0)
            sum += n * (factor + log2(n)) * share;
        sum_of_shares += share;
    }
    return sum / sum_of_shares;
}

double
information_least_apart(double total)
{
    return trunc(fmin(25, fmax(2, (total - 10000) / (1000000 - 10000) * (25 - 2) + 2)));
}

double
information_of(const struct information *information, const double *with_label,
               int64_t stored_count)
{
    double term = 0, sum = 0, by_chance = 0;
    bool tells = false;

    for (int64_t i = 0; i < information->label_count; i++)
        term += with_label[i];
    if (information->total == 0 || rint(term) == rint(information->total) || term == 0)
        return INFORMATION_NONE;
    for (int64_t i = 0; i < information->label_count; i++) {
        double label = information->labels[i], share = with_label[i] / term, both;

        if (label == 0)
            continue;
        share = fmin(fmax(share, SHARE_MARGIN), 1 - SHARE_MARGIN);
        if (i < stored_count)
            share = (double)(float)share;
        both = share * term;
        if (fabs(term * label / information->total - both) < information->least_apart)
            continue;
        tells = true;
        sum += partial(both, term, label, information->total);
        if (information->is_adjusted)
            by_chance += expected(information->total, term, label);
    }
    return tells ? sum - by_chance : INFORMATION_NONE;
}
