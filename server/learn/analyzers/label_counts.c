/* label_counts.c - weights of labels, in all and with each term. */
#include "learn/analyzers/label_counts.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

void
label_counts_close(struct label_counts *labels)
{
    free(labels->by_term);
    free(labels->weights);
    free(labels->stored);
    free(labels->batch_terms);
}

/* Room for the numbers of `label`, of each term and in all. */
static void
reserve(struct label_counts *labels, int64_t label, uint32_t terms)
{
    int64_t count = label + 1 > labels->count ? label + 1 : labels->count;
    int64_t capacity = 2 * (int64_t)terms + 64;
    double *wider;

    if (count == labels->count && terms <= labels->capacity)
        return;
    wider = tnd_zalloc((size_t)(capacity * count), sizeof *wider);
    for (int64_t t = 0; t < labels->capacity; t++)
        if (labels->count > 0 && t < terms)
            memcpy(&wider[t * count], &labels->by_term[t * labels->count],
                   (size_t)labels->count * sizeof *wider);
    free(labels->by_term);
    labels->by_term = wider;
    labels->stored = tnd_realloc(labels->stored, (size_t)capacity, sizeof *labels->stored);
    for (int64_t t = labels->capacity; t < capacity; t++)
        labels->stored[t] = 0;
    labels->weights = tnd_realloc(labels->weights, (size_t)count, sizeof *labels->weights);
    for (int64_t i = labels->count; i < count; i++)
        labels->weights[i] = 0;
    labels->count = count;
    labels->capacity = capacity;
}

void
label_counts_see(struct label_counts *labels, int64_t label, double weight, uint32_t terms)
{
    reserve(labels, label, terms);
    if (labels->batch_width <= label)
        labels->batch_width = label + 1;
    labels->weights[label] += weight;
    labels->total += weight;
}

static void
note_in_batch(struct label_counts *labels, uint32_t term)
{
    if (labels->batch_term_count == labels->batch_term_capacity) {
        labels->batch_term_capacity = 2 * labels->batch_term_capacity + 64;
        labels->batch_terms = tnd_realloc(labels->batch_terms, (size_t)labels->batch_term_capacity,
                                          sizeof *labels->batch_terms);
    }
    labels->batch_terms[labels->batch_term_count++] = term;
}

void
label_counts_add(struct label_counts *labels, uint32_t term, int64_t label, double weight)
{
    reserve(labels, label, term + 1);
    note_in_batch(labels, term);
    labels->by_term[term * labels->count + label] += weight;
}

void
label_counts_end_batch(struct label_counts *labels)
{
    for (int64_t i = 0; i < labels->batch_term_count; i++) {
        int64_t *stored = &labels->stored[labels->batch_terms[i]];

        if (*stored < labels->batch_width)
            *stored = labels->batch_width;
    }
    labels->batch_term_count = 0;
    labels->batch_width = 0;
}
