/* stage_rules.c - rules between the parameters of a stage, which the table of parameters cannot
 * express. */
#include <string.h>

#include "pipeline/check.h"

/* The value if it is an integer literal, else NULL. */
static const struct spec_value *
integer_of(const struct spec_stage *stage, const char *parameter)
{
    const struct spec_value *value = spec_get(stage, parameter);

    return value != NULL && value->kind == SPEC_INTEGER ? value : NULL;
}

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

static void
rule_range(struct check *check, const struct spec_stage *stage)
{
    const struct spec_value *step = integer_of(stage, "step");

    if (step != NULL && step->integer == 0)
        spec_complain(check->errors, step->line, step->column, "step of range must not be 0");
}

static void
/* tf.data refuses these when the pipeline runs; here they are errors of the file. */
rule_shuffle(struct check *check, const struct spec_stage *stage)
{
    const struct spec_value *size = integer_of(stage, "buffer_size");

    /* tf.data's UNKNOWN_CARDINALITY (-2) asks for a buffer of all elements; INFINITE (-1) is not
     * allowed. */
    if (size != NULL && (size->integer == 0 || size->integer == -1))
        spec_complain(check->errors, size->line, size->column,
                      "buffer_size of shuffle must be at least 1 (or -2 for all elements), not "
                      "%lld",
                      (long long)size->integer);
}

static void
rule_shard(struct check *check, const struct spec_stage *stage)
{
    const struct spec_value *shards = spec_get(stage, "num_shards");
    const struct spec_value *index = spec_get(stage, "index");

    if (shards == NULL)
        return;
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
static void
rule_interleave(struct check *check, const struct spec_stage *stage)
{
    const struct spec_value *cycle = integer_of(stage, "cycle_length");
    const struct spec_value *calls = integer_of(stage, "num_parallel_calls");

    if (cycle != NULL && calls != NULL && calls->integer > cycle->integer)
        spec_complain(check->errors, calls->line, calls->column,
                      "num_parallel_calls of interleave must not be more than cycle_length "
                      "(%lld), it is %lld",
                      (long long)cycle->integer, (long long)calls->integer);
}

static void
refuse_none(struct check *check, const struct spec_stage *stage, const char *parameter)
{
    /* AUTOTUNE is -1, so 0 is the only value that the range lets pass wrongly. */
    const struct spec_value *number = integer_of(stage, parameter);

    if (number != NULL && number->integer == 0)
        spec_complain(check->errors, number->line, number->column,
                      "%s of %s must be at least 1, or AUTOTUNE", parameter, stage->info->name);
}

static void
rule_parallel_calls(struct check *check, const struct spec_stage *stage)
{
    refuse_none(check, stage, "num_parallel_calls");
}

static void
rule_parallel_reads(struct check *check, const struct spec_stage *stage)
{
    refuse_none(check, stage, "num_parallel_reads");
}

static void
rule_bucket_by_sequence_length(struct check *check, const struct spec_stage *stage)
{
    const struct spec_value *boundaries = spec_get(stage, "bucket_boundaries");
    const struct spec_value *sizes = spec_get(stage, "bucket_batch_sizes");

    if (boundaries == NULL || sizes == NULL || boundaries->kind != SPEC_LIST ||
        sizes->kind != SPEC_LIST)
        return;
    /* The last bucket is for all sequences longer than the last boundary. */
    if (sizes->count != boundaries->count + 1)
        spec_complain(check->errors, sizes->line, sizes->column,
                      "bucket_batch_sizes must have one entry more than bucket_boundaries: %u, "
                      "not %u",
                      boundaries->count + 1, sizes->count);
    check_rises(check, boundaries, "bucket_boundaries");
}

static void
rule_sample_from_datasets(struct check *check, const struct spec_stage *stage)
{
    const struct spec_value *datasets = spec_get(stage, "datasets");
    const struct spec_value *weights = spec_get(stage, "weights");

    if (datasets == NULL || datasets->kind != SPEC_LIST || weights == NULL ||
        weights->kind != SPEC_LIST)
        return;
    if (weights->count != datasets->count)
        spec_complain(check->errors, weights->line, weights->column,
                      "there must be as many weights as datasets: %u, not %u", datasets->count,
                      weights->count);
}

static void
rule_some_datasets(struct check *check, const struct spec_stage *stage)
{
    const struct spec_value *datasets = spec_get(stage, "datasets");

    if (datasets != NULL && datasets->kind == SPEC_LIST && datasets->count == 0)
        spec_complain(check->errors, datasets->line, datasets->column,
                      "%s needs at least one dataset", stage->info->name);
}

static void
rule_field_delim(struct check *check, const struct spec_stage *stage)
{
    const struct spec_value *delim = spec_get(stage, "field_delim");

    /* The CSV scanner compares single bytes. */
    if (delim != NULL && delim->kind == SPEC_TEXT && delim->text_bytes != 1)
        spec_complain(check->errors, delim->line, delim->column,
                      "field_delim of %s must be one byte, not %zu", stage->info->name,
                      delim->text_bytes);
    check_record_defaults(check, stage);
}

static void
rule_csv(struct check *check, const struct spec_stage *stage)
{
    const struct spec_value *chosen = spec_get(stage, "select_cols");
    const struct spec_value *excluded = spec_get(stage, "exclude_cols");

    rule_field_delim(check, stage);
    if (chosen != NULL && excluded != NULL && chosen->kind == SPEC_LIST &&
        excluded->kind == SPEC_LIST)
        spec_complain(check->errors, excluded->line, excluded->column,
                      "csv takes select_cols or exclude_cols, not both");
}

static void
rule_select_cols(struct check *check, const struct spec_stage *stage)
{
    const struct spec_value *chosen = spec_get(stage, "select_cols");

    if (chosen == NULL || chosen->kind != SPEC_LIST)
        return;
    /* tf.io.decode_csv wants ascending indices too. */
    check_rises(check, chosen, "select_cols");
}

/* A scalar may stand for both entries, so the table of types cannot ask for two. */
static void
rule_list_of_two(struct check *check, const struct spec_stage *stage)
{
    static const char *const pairs[] = {
        "factor",     "height_factor", "width_factor", "value_range", "size",
        "area_range", "salt",          "key",          "ngram_range", "aspect_ratio_range"
    };

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const struct spec_value *value;
        bool is_salt = strcmp(pairs[i], "salt") == 0;

        if (stage_parameter(stage->info, pairs[i]) < 0)
            continue;
        value = spec_get(stage, pairs[i]);
        if (value == NULL || value->kind != SPEC_LIST || value->count == 2 ||
            /* Keras takes one integer as salt for both keys of SipHash. */
            (is_salt && value->count == 1))
            continue;
        spec_complain(check->errors, value->line, value->column,
                      "%s of %s must have two entries, not %u", pairs[i], stage->info->name,
                      value->count);
    }
}

/* Check the entries of a mapping, or the value itself, as a parameter of these types. */
static void
check_entries(struct check *check, const struct spec_stage *stage, const char *parameter,
              uint32_t types)
{
    const struct spec_value *value = spec_get(stage, parameter);
    struct parameter_info entry = { .name = parameter, .types = types, .minimum = 1 };

    if (value == NULL || value->kind != SPEC_MAP)
        return;
    for (uint32_t i = 0; i < value->count; i++)
        check_value(check, stage->info, &entry, &value->items[i]);
}

static void
rule_padding(struct check *check, const struct spec_stage *stage)
{
    check_entries(check, stage, "padded_shapes", TYPE_SHAPE | TYPE_UNSET);
    check_entries(check, stage, "padding_values", TYPE_NUMBER | TYPE_TEXT | TYPE_BOOL | TYPE_UNSET);
}

static void
rule_webdataset(struct check *check, const struct spec_stage *stage)
{
    check_entries(check, stage, "columns", TYPE_TEXT | TYPE_TEXTS);
}

static const struct {
    const char *stage; /* NULL: every stage that has `parameter` */
    const char *parameter;
    void (*check)(struct check *check, const struct spec_stage *stage);
} rules[] = {
    { "range", NULL, rule_range },
    { "shuffle", NULL, rule_shuffle },
    { "shard", NULL, rule_shard },
    { "interleave", NULL, rule_interleave },
    { NULL, "num_parallel_calls", rule_parallel_calls },
    { NULL, "num_parallel_reads", rule_parallel_reads },
    { "bucket_by_sequence_length", NULL, rule_bucket_by_sequence_length },
    { "sample_from_datasets", NULL, rule_sample_from_datasets },
    { NULL, "datasets", rule_some_datasets },
    { "csv", NULL, rule_csv },
    { "decode_csv", NULL, rule_field_delim },
    { NULL, "select_cols", rule_select_cols },
    { NULL, "features", check_features },
    { NULL, "tensors", check_tensors },
    { "values", NULL, check_values },
    { "program", NULL, check_program_spec },
    { "webdataset", NULL, rule_webdataset },
    { NULL, "padded_shapes", rule_padding },
    { NULL, NULL, rule_list_of_two },
};

/* A stage may have several rules; each complains for itself. */
void
check_stage_rules(struct check *check, const struct spec_stage *stage)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].stage != NULL && strcmp(rules[i].stage, stage->info->name) != 0)
            continue;
        if (rules[i].parameter != NULL && stage_parameter(stage->info, rules[i].parameter) < 0)
            continue;
        rules[i].check(check, stage);
    }
}
