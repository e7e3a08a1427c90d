/* example.h - tf.train.Examples into arrays, one for each feature that is wanted.
 *
 * Records are taken in order. In each, the next feature is guessed from the one before it and from
 * the records before, so that its name is compared once, a word at a time, and nothing is hashed;
 * features that are not wanted are skipped. Where the first records show entries that follow one
 * another and are always equally long, these are compared many at once. A record in which anything
 * is unusual (a list twice, a wrong kind or count, a field out of order, broken bytes) is read
 * again by a plain parser that follows TensorFlow's step by step and finds the words for the fault.
 */
#ifndef CONTENT_RECORDS_EXAMPLE_H
#define CONTENT_RECORDS_EXAMPLE_H

#include "column/frame.h"

/* A feature that is wanted. The same name may be wanted more than once. */
struct example_feature {
    char *name; /* any bytes but NUL, as it stands in the record; owned */
    size_t name_bytes;
    tundish_dtype dtype; /* INT64, FLOAT32 or STRING */
    bool is_list;        /* any number of values, else exactly value_count */
    bool is_padded;      /* a list that TensorFlow holds as a dense tensor: FixedLenSequence */
    uint8_t rank;        /* of the shape; of a list: of its items' */
    int64_t *shape;      /* rank sizes, or NULL for none; owned. JSON's lists have this form */
    int64_t value_count; /* of a list: its length must be a multiple of this */
    char *features_shape_text; /* "[2,3]", for messages; owned */
    void *fallback; /* not a list: value_count values for a record that lacks the feature;
                       NULL: it is required. Owned, and so are the bytes of strings. */
};

struct example_parser;
struct json_paths;

/* Takes over the features (and frees them at close). */
struct example_parser *example_parser_open(struct example_feature *features, uint32_t count);
void example_parser_close(struct example_parser *parser); /* accepts NULL */

const struct example_feature *example_parser_feature(const struct example_parser *parser,
                                                     uint32_t index);
uint32_t example_parser_count(const struct example_parser *parser);

/* The first feature of a name; -1: there is none. */
int32_t example_parser_find(const struct example_parser *parser, struct byte_view name);

/* The ways to features inside JSON objects. */
const struct json_paths *example_parser_paths(const struct example_parser *parser);

/* Where one feature's values go. */
struct example_values {
    void *values;     /* not a list: given by the caller, value_count a record */
    int64_t *splits;  /* list: records + 1 */
    int64_t capacity; /* list: room at `values` */
    bool is_met;      /* JSON: the last record has the feature, if only as an empty list */
};

struct example_input {
    const struct byte_view *records; /* 64 readable bytes after each */
    int64_t count;
    const struct column *column; /* whose values the records are; NULL: one for each element */
    bool is_batch;               /* tf.io.parse_example, else parse_single_example */
};

/* Fill values[f] for each feature f. Lists are put into the frame's scratch. Elements with a bad
 * record are rejected; their values may be read but mean nothing. */
void example_parse(const struct example_parser *parser, const struct example_input *input,
                   struct frame *frame, struct example_values *values);

/* As above, all of it by the plain parser; for tests, which compare the two. */
void example_parse_plainly(const struct example_parser *parser, const struct example_input *input,
                           struct frame *frame, struct example_values *values);

#endif
