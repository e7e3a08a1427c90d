/* information.h - how much a term tells of a label, as tf.Transform computes it. */
#ifndef LEARN_ANALYZERS_INFORMATION_H
#define LEARN_ANALYZERS_INFORMATION_H

#include <stdbool.h>
#include <stdint.h>

/* No label told anything: a zero like any other but for its sign, which none that is computed has.
 * tf.Transform writes it as an integer. */
#define INFORMATION_NONE (-0.0)

struct information {
    int64_t label_count;
    double total;         /* rows, or the sum of their weights */
    const double *labels; /* the same for each label */
    bool is_adjusted;     /* less what chance alone would give */
    double least_apart;   /* a label that is as near as this to the average tells nothing */
};

/* tf.Transform's least_apart where none is wanted: more the more rows there are. */
double information_least_apart(double total);

/* For a term that is in rows of these labels. TensorFlow has stored the shares of the first
 * `stored_count` labels as float32; that of others is 0 without having been stored, which tells
 * terms of equal counts apart. */
double information_of(const struct information *information, const double *with_label,
                      int64_t stored_count);

#endif
