/* learning.h - what `tundish analyze` learns for a content stage (content_ops.learning), so that
 * the learning part does not depend on the names of stages. */
#ifndef CONTENT_LEARNED_LEARNING_H
#define CONTENT_LEARNED_LEARNING_H

#include "content/learned/learned.h"

enum learned_kind {
    LEARNED_VOCABULARY,
    LEARNED_MOMENTS,    /* mean and variance */
    LEARNED_EXTREMES,   /* minimum and maximum */
    LEARNED_BINS,       /* boundaries, as Keras finds them */
    LEARNED_QUANTILES,  /* boundaries, as tf.Transform finds them */
    LEARNED_COVARIANCE, /* of vectors */
    LEARNED_COMPONENTS, /* the principal ones */
    LEARNED_TAILS,      /* the moments of a distribution with tails */
    LEARNED_RARITIES,   /* inverse document frequencies */
    LEARNED_KINDS
};

/* Keras' vocabularies: the terms that are not learned. Texts are the pipeline file's. */
struct learned_specials {
    enum vocab_keys keys;
    int64_t num_oov_indices;
    bool has_mask;
    struct byte_view mask, oov; /* VOCAB_STRINGS */
    int64_t mask_integer, oov_integer;
};

struct content_learning {
    enum learned_kind kind;

    /* A Keras layer: numbers are seen as float32, and NaN counts. Else tf.Transform's. */
    bool is_keras;

    /* Its columns stay as they are: they are only looked at. */
    bool keeps_columns;

    /* `output` lists columns of its own, the last of which names the statistics; else each column
     * that is learned from has one output. */
    bool has_own_outputs;

    /* The parameter that names the statistics. NULL: `statistics`. */
    const char *named_by;

    /* Do its parameters leave anything to be learned? NULL: always. */
    bool (*is_needed)(const struct spec_stage *stage);

    /* These make the values to learn from of the columns. NULL: the columns are the values. */
    const struct content_ops *made_by;

    /* For Keras' vocabularies. */
    void (*specials)(const struct spec_stage *stage, struct learned_specials *ret_specials);

    /* How its vocabulary lies. NULL: a term a line. */
    struct learned_form (*form)(const struct spec_stage *stage);
};

#endif
