/* label_counts.h - how much weight each label has, in all and with each term.
 *
 * tf.Transform keeps for a term the shares of all labels up to the highest of the batches that it
 * was in; which labels are among them matters to what it computes (information.h). */
#ifndef LEARN_ANALYZERS_LABEL_COUNTS_H
#define LEARN_ANALYZERS_LABEL_COUNTS_H

#include <stdint.h>

/* Begins with zeros. */
struct label_counts {
    double *by_term; /* of each term, `count` numbers */
    double *weights; /* of each label */
    int64_t count, capacity;
    int64_t *stored;       /* of each term: labels up to the highest of its batches */
    int64_t batch_width;   /* labels up to the highest of this batch */
    uint32_t *batch_terms; /* seen in it */
    int64_t batch_term_count, batch_term_capacity;
    double total;
};

void label_counts_close(struct label_counts *labels);

/* A value of this label, whether or not it is a term; there are `terms` of them by now. */
void label_counts_see(struct label_counts *labels, int64_t label, double weight, uint32_t terms);

/* It is this term. */
void label_counts_add(struct label_counts *labels, uint32_t term, int64_t label, double weight);

/* A batch of tf.Transform's is over. */
void label_counts_end_batch(struct label_counts *labels);

#endif
