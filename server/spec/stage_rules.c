/* stage_rules.c - what types and limits of a parameter cannot say. */
#include "spec/stage_rules.h"

#include <string.h>

#include "spec/check.h"

static void
check_rises(struct check *check, const struct spec_value *list, const char *name)
{
    for (uint32_t i = 1; i < list->count; i++) {
        const struct spec_value *last = &list->items[i - 1], *item = &list->items[i];

        if (last->kind == SPEC_INTEGER && item->kind == SPEC_INTEGER &&
            item->integer <= last->integer)
            spec_complain(check->errors, item->line, item->column, "%s must be in ascending order",
                          name);
    }
}

void
rule_step(struct check *check, const struct spec_stage *stage, const struct spec_value *step)
{
    if (step->kind == SPEC_INTEGER && step->integer == 0)
        spec_complain(check->errors, step->line, step->column, "step of %s must not be 0",
                      stage->info->name);
}

/* tf.data refuses these when the pipeline runs; here they are errors of the file. */
void
rule_shuffle_buffer(struct check *check, const struct spec_stage *stage,
                    const struct spec_value *size)
{
    /* tf.data's UNKNOWN_CARDINALITY (-2) asks for a buffer of all elements; INFINITE (-1) is not
     * allowed. */
    if (size->kind == SPEC_INTEGER && (size->integer == 0 || size->integer == -1))
        spec_complain(check->errors, size->line, size->column,
                      "buffer_size of %s must be at least 1 (or -2 for all elements), not %lld",
                      stage->info->name, (long long)size->integer);
}

void
rule_num_shards(struct check *check, const struct spec_stage *stage,
                const struct spec_value *shards)
{
    const struct spec_value *index = spec_get(stage, "index");

    if (shards->kind == SPEC_TEXT && strcmp(shards->text, "SHARD_HINT") != 0)
        spec_complain(check->errors, shards->line, shards->column,
                      "num_shards of shard must be an integer of at least 1 or SHARD_HINT, not "
                      "\"%.60s\"",
                      shards->text);
    else if (shards->kind != SPEC_TEXT && shards->kind != SPEC_BROKEN && index == NULL)
        spec_complain(check->errors, stage->line, stage->column, "shard needs index");
    /* A shard is chosen by index modulo num_shards, so a larger index would yield nothing. */
    else if (shards->kind == SPEC_INTEGER && shards->integer >= 1 && index->kind == SPEC_INTEGER &&
             index->integer >= shards->integer)
        spec_complain(check->errors, index->line, index->column,
                      "index of shard must be less than num_shards (%lld), not %lld",
                      (long long)shards->integer, (long long)index->integer);
}

/* ParallelInterleaveDatasetV4 refuses this when it runs; here it is an error of the file. */
void
rule_cycle_length(struct check *check, const struct spec_stage *stage,
                  const struct spec_value *cycle)
{
    const struct spec_value *calls = spec_get(stage, "num_parallel_calls");

    if (cycle->kind == SPEC_INTEGER && calls != NULL && calls->kind == SPEC_INTEGER &&
        calls->integer > cycle->integer)
        spec_complain(check->errors, calls->line, calls->column,
                      "num_parallel_calls of %s must not be more than cycle_length (%lld), it is "
                      "%lld",
                      stage->info->name, (long long)cycle->integer, (long long)calls->integer);
}

/* AUTOTUNE is -1, so 0 is the only value that the range lets pass wrongly. */
static void
refuse_none(struct check *check, const struct spec_stage *stage, const struct spec_value *number,
            const char *parameter)
{
    if (number->kind == SPEC_INTEGER && number->integer == 0)
        spec_complain(check->errors, number->line, number->column,
                      "%s of %s must be at least 1, or AUTOTUNE", parameter, stage->info->name);
}

void
rule_parallel_calls(struct check *check, const struct spec_stage *stage,
                    const struct spec_value *calls)
{
    refuse_none(check, stage, calls, "num_parallel_calls");
}

void
rule_parallel_reads(struct check *check, const struct spec_stage *stage,
                    const struct spec_value *reads)
{
    refuse_none(check, stage, reads, "num_parallel_reads");
}

void
rule_bucket_batch_sizes(struct check *check, const struct spec_stage *stage,
                        const struct spec_value *sizes)
{
    const struct spec_value *boundaries = spec_get(stage, "bucket_boundaries");

    if (boundaries == NULL || boundaries->kind != SPEC_LIST || sizes->kind != SPEC_LIST)
        return;
    /* The last bucket is for all sequences longer than the last boundary. */
    if (sizes->count != boundaries->count + 1)
        spec_complain(check->errors, sizes->line, sizes->column,
                      "bucket_batch_sizes must have one entry more than bucket_boundaries: %u, "
                      "not %u",
                      boundaries->count + 1, sizes->count);
    check_rises(check, boundaries, "bucket_boundaries");
}

void
rule_dataset_weights(struct check *check, const struct spec_stage *stage,
                     const struct spec_value *weights)
{
    const struct spec_value *datasets = spec_get(stage, "datasets");

    if (datasets == NULL || datasets->kind != SPEC_LIST || weights->kind != SPEC_LIST)
        return;
    if (weights->count != datasets->count)
        spec_complain(check->errors, weights->line, weights->column,
                      "there must be as many weights as datasets: %u, not %u", datasets->count,
                      weights->count);
}

void
rule_datasets(struct check *check, const struct spec_stage *stage,
              const struct spec_value *datasets)
{
    if (datasets->kind == SPEC_LIST && datasets->count == 0)
        spec_complain(check->errors, datasets->line, datasets->column,
                      "%s needs at least one dataset", stage->info->name);
}

void
rule_field_delim(struct check *check, const struct spec_stage *stage,
                 const struct spec_value *delim)
{
    /* The CSV scanner compares single bytes. */
    if (delim->kind == SPEC_TEXT && delim->text_bytes != 1)
        spec_complain(check->errors, delim->line, delim->column,
                      "field_delim of %s must be one byte, not %zu", stage->info->name,
                      delim->text_bytes);
}

void
rule_exclude_cols(struct check *check, const struct spec_stage *stage,
                  const struct spec_value *excluded)
{
    const struct spec_value *chosen = spec_get(stage, "select_cols");

    if (chosen != NULL && chosen->kind == SPEC_LIST && excluded->kind == SPEC_LIST)
        spec_complain(check->errors, excluded->line, excluded->column,
                      "%s takes select_cols or exclude_cols, not both", stage->info->name);
}

void
rule_select_cols(struct check *check, const struct spec_stage *stage,
                 const struct spec_value *chosen)
{
    (void)stage;
    /* tf.io.decode_csv wants ascending indices too. */
    if (chosen->kind == SPEC_LIST)
        check_rises(check, chosen, "select_cols");
}

/* A list of two, or of `least`; a scalar, where the parameter takes one, stands for both. */
static void
check_two(struct check *check, const struct spec_stage *stage, const struct spec_value *value,
          uint32_t least)
{
    uint32_t at = 0;

    if (value->kind != SPEC_LIST || value->count == 2 || value->count == least)
        return;
    while (stage->arguments[at] != value)
        at++;
    spec_complain(check->errors, value->line, value->column,
                  "%s of %s must have two entries, not %u", stage->info->parameters[at].name,
                  stage->info->name, value->count);
}

void
rule_pair(struct check *check, const struct spec_stage *stage, const struct spec_value *value)
{
    check_two(check, stage, value, 2);
}

/* Keras takes one integer as salt for both keys of SipHash. */
void
rule_salt(struct check *check, const struct spec_stage *stage, const struct spec_value *salt)
{
    check_two(check, stage, salt, 1);
}

/* Check the entries of a mapping as a parameter of these types. */
static void
check_entries(struct check *check, const struct spec_stage *stage, const struct spec_value *map,
              const char *parameter, uint32_t types)
{
    struct parameter_info entry = { .name = parameter, .types = types, .minimum = 1 };

    for (uint32_t i = 0; map->kind == SPEC_MAP && i < map->count; i++)
        check_value(check, stage->info, &entry, &map->items[i]);
}

void
rule_padded_shapes(struct check *check, const struct spec_stage *stage,
                   const struct spec_value *shapes)
{
    check_entries(check, stage, shapes, "padded_shapes", TYPE_SHAPE | TYPE_UNSET);
}

void
rule_padding_values(struct check *check, const struct spec_stage *stage,
                    const struct spec_value *values)
{
    check_entries(check, stage, values, "padding_values",
                  TYPE_NUMBER | TYPE_TEXT | TYPE_BOOL | TYPE_UNSET);
}

/* The columns of webdataset may be a mapping to extensions. */
void
rule_extensions(struct check *check, const struct spec_stage *stage,
                const struct spec_value *columns)
{
    check_entries(check, stage, columns, "columns", TYPE_TEXT | TYPE_TEXTS);
}

/* Each rule complains for itself, so that one pass finds all errors. */
void
check_stage_rules(struct check *check, const struct spec_stage *stage)
{
    for (uint32_t i = 0; i < stage->info->parameter_count; i++) {
        stage_rule *rule = stage->info->parameters[i].rule;

        if (rule != NULL && stage->arguments[i] != NULL)
            rule(check, stage, stage->arguments[i]);
    }
}
