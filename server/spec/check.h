/* check.h - from a tree of YAML values to a checked pipeline file, one layer a file.
 *
 * Every function complains about what it finds and goes on, so that one pass finds all errors.
 * Nothing here is called once spec_open has returned.
 */
#ifndef SPEC_CHECK_H
#define SPEC_CHECK_H

#include <stddef.h>

#include "spec/spec.h"
#include "spec/spec_memory.h"
#include "spec/stages.h"

enum { DATASET_DEPTH_MAX = 32, STAGE_TOTAL_MAX = 10000 };

/* An entry of `datasets:`, looked at when it is first mentioned. */
struct named_dataset {
    const struct spec_value *key, *value;
    struct spec_dataset *dataset; /* NULL: not looked at yet */
    bool is_open;                 /* being looked at: a mention now is a circle */
    const struct named_dataset *mentioned_by;
};

struct check {
    struct spec_memory *memory;
    struct spec_errors *errors;
    struct spec_file *file;
    struct named_dataset *named;
    size_t named_count;
    const struct named_dataset *open; /* the innermost being looked at */
    uint32_t nesting;
};

/* check_value.c: one value against one parameter. Returns what to keep: the value itself, or its
 * checked form (expressions are texts, datasets are resolved). NULL: a null that is the same as
 * leaving the parameter out. `owner` is for messages. */
const struct spec_value *check_value(struct check *check, const struct stage_info *owner,
                                     const struct parameter_info *parameter,
                                     const struct spec_value *value);

/* check_value.c: the value of a parameter that was not written, or NULL. */
const struct spec_value *check_default(struct check *check, const struct parameter_info *parameter,
                                       uint32_t line, uint32_t column);

/* check_mapping.c: a mapping against a list of parameters, one argument for each. A value that is
 * not a mapping is complained about. ret_given may be NULL. */
const struct spec_value **check_mapping(struct check *check, const struct stage_info *info,
                                        const struct spec_value *map, uint64_t *ret_given);

/* check_mapping.c: fill in the defaults of missing parameters. */
void check_fill(struct check *check, const struct stage_info *info, uint32_t line, uint32_t column,
                const struct spec_value **arguments);

/* check_stage.c: one entry of a list of stages. False: the stage is unknown. */
bool check_stage(struct check *check, const struct spec_value *value, struct spec_stage *ret_stage);

/* stage_rules.c: the rules of the parameters (stage_rules.h). */
void check_stage_rules(struct check *check, const struct spec_stage *stage);

/* check_dataset.c: a name or a list of stages. NULL: the dataset is unknown. */
const struct spec_dataset *check_dataset(struct check *check, const struct spec_value *value);
void check_named_datasets(struct check *check, const struct spec_value *datasets);
struct named_dataset *check_find_dataset(struct check *check, const char *name); /* NULL: none */

/* check_stream.c */
void check_stream(struct check *check, const struct spec_value *name,
                  const struct spec_value *value, struct spec_stream *ret_stream);

/* check_deliver.c */
void check_distribute(struct check *check, const struct spec_value *value,
                      struct spec_distribute *ret_distribute);
void check_remote(struct check *check, const struct spec_value *value,
                  struct spec_remote *ret_remote);
void check_deliver(struct check *check, const struct spec_value *value,
                   struct spec_deliver *ret_deliver);

/* check_file.c: the whole. */
void check_file(struct check *check, const struct spec_value *root);

#endif
