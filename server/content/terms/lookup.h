/* lookup.h - what string_lookup and integer_lookup have in common: all but the kind of key. */
#ifndef CONTENT_LOOKUP_H
#define CONTENT_LOOKUP_H

#include "content/terms/lookup_table.h"

struct lookup {
    struct lookup_rules rules;
    bool sparse;
    struct content_targets targets;
    struct lookup_table *tables; /* of each target */
    struct column_spec *inputs;  /* of each target; names are the input schema's */
};

/* The usual members of content_ops, for a state of type struct lookup. */
tundish_status lookup_open(struct lookup *lookup, enum vocab_keys keys,
                           const struct stage_config *config, struct schema *ret_schema,
                           bool *ret_batch_wide);
tundish_status lookup_apply(const void *state, const struct frame *input, struct frame *output);
void lookup_close(void *state);
void lookup_files(const void *state,
                  void (*say)(void *context, const char *name, uint64_t content_hash),
                  void *context);

void lookup_vocabularies(const void *state, content_say_vocabulary *say, void *context);

/* Read `salt`: an integer or two of them. *ret_given says whether it was there. */
tundish_status lookup_salt(const struct stage_config *config, uint64_t ret_salt[2],
                           bool *ret_given);

/* The integers of a column as int64: its own values, or a copy in scratch. */
const int64_t *integers_of(tundish_dtype dtype, const struct column *column,
                           struct scratch *scratch);

#endif
