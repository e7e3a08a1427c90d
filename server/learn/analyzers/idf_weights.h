/* idf_weights.h - the weight of each term in a document, by index: Keras' tf_idf. */
#ifndef LEARN_ANALYZERS_IDF_WEIGHTS_H
#define LEARN_ANALYZERS_IDF_WEIGHTS_H

#include <stdint.h>

#include "learn/results/artifact_folder.h"

/* Begins with zeros but for the given members. */
struct idf_weights {
    double *list; /* of the terms so far */
    int64_t count, capacity;
    int64_t documents;  /* of all; said */
    int64_t first_term; /* special indices before the terms; said */
    int64_t depth;      /* zeros follow, up to this number in all; said */
};

/* The next term, which is in that number of documents. */
void idf_weights_add(struct idf_weights *weights, int64_t documents);
tundish_status idf_weights_write(const struct idf_weights *weights, struct artifact_folder *folder,
                                 const char *name);
void idf_weights_close(struct idf_weights *weights);

#endif
