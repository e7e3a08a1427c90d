/* vocabulary_state.h - a vocabulary while it is learned: counted by analyzer_vocabulary.c, written
 * by vocabulary_write.c. */
#ifndef LEARN_TERMS_VOCABULARY_STATE_H
#define LEARN_TERMS_VOCABULARY_STATE_H

#include "content/learned/learned.h"
#include "learn/analyzers/analyzer.h"
#include "learn/analyzers/label_counts.h"

struct vocabulary {
    struct analyzer_config config;
    bool is_keras, is_integer;
    uint32_t depth;       /* of the element */
    bool wants_documents; /* tf_idf */
    bool has_weights, has_labels;
    bool has_mask;
    struct byte_view mask, oov; /* Keras: no terms; owned, in the tables' form */
    int64_t first_term, most;   /* special indices; terms at most, -1: all */
    int64_t padded_to;          /* Keras: weights at least */
    double threshold;
    const struct term_order *order;
    const struct spec_value *reserved; /* the pipeline file's */
    struct learned_form form;
    bool is_adjusted;
    _Atomic bool has_rows; /* it has seen any */
    double least_apart;    /* -1: as many rows have it */
    struct terms **tables; /* one a thread, or one */
    uint32_t table_count;
    int64_t *documents; /* seen so far, by table */
    struct terms_memory own_memory;
    struct label_counts labels;
    int64_t rows, batch_end; /* labels: rows seen; where tf.Transform's batch ends */
};

/* Rank the terms of the tables and write the file, and the idf weights that go with it. Closes the
 * tables. */
tundish_status vocabulary_write(struct vocabulary *vocabulary);
void vocabulary_close_tables(struct vocabulary *vocabulary); /* again is nothing */

#endif
