/* features.h - the `features` and `columns` of a parse stage, checked.
 *
 * `columns` names what comes out, in order (default: the keys of `features`); an entry of
 * `features` says what a column is, its key being a name, a glob or a range.
 */
#ifndef CONTENT_RECORDS_FEATURES_H
#define CONTENT_RECORDS_FEATURES_H

#include "content/content.h"

enum feature_type { FEATURE_FIXED, FEATURE_SEQUENCE, FEATURE_VARLEN, FEATURE_RAGGED };

enum partition_type {
    PARTITION_SPLITS,
    PARTITION_LENGTHS,
    PARTITION_STARTS,
    PARTITION_LIMITS,
    PARTITION_ROW_IDS,
    PARTITION_UNIFORM
};

struct feature_partition {
    enum partition_type type;
    char *key;      /* in the record */
    int64_t length; /* UNIFORM */
};

/* One column to come. */
struct feature {
    char *column;
    char *key; /* in the record */
    enum feature_type type;
    tundish_dtype dtype; /* INT64, FLOAT32 or STRING, unless any_dtype was allowed */
    int rank;            /* of FIXED and of an item of SEQUENCE */
    int64_t shape[RANK_MAX];
    int64_t value_count; /* of the shape */
    void *fallback;      /* FIXED: value_count values or NULL; SEQUENCE: one value to pad with */
    uint32_t partition_count; /* RAGGED, outermost first */
    struct feature_partition *partitions;
    bool splits_int32;
    uint32_t line, at_column; /* where it was written */
};

struct feature_list {
    uint32_t count;
    struct feature *features;
};

/* Read `features` and `columns` of the stage. Complains about all that is wrong. */
tundish_status features_open(const struct stage_config *config, struct feature_list *ret_list);
void features_close(struct feature_list *list);

/* The input column that the stage reads: `serialized`, else `value`, else the only one. It must be
 * a string column. */
tundish_status features_serialized(const struct stage_config *config, uint32_t *ret_index);

/* "[2,3]"; the caller frees. */
char *features_shape_text(const int64_t *shape, int rank);

#endif
