/* observer_stage.c - the content stage that replaces one that is being learned. It hands
 * the columns to the analyzers and makes no output. */
#include "learn/observer_private.h"

#include <stdlib.h>

#include "column/convert.h"
#include "content/learned/learned.h"
#include "content/terms/lookup.h"
#include "core/memory.h"

/* State of one observing stage. */
struct observer_stage {
    struct observer *observer;
    struct content_targets targets;
    struct observed **observed;              /* of each target; the observer's */
    const struct content_learning *learning; /* of the stage */
    void *made_state;                        /* of learning->made_by, if that is given */
    struct schema made_schema;
};

static const char *const side_parameters[SIDES] = { "key", "weights", "labels" };

static void
add_missing(struct observer *observer, const char *name)
{
    struct spec_names *missing = observer->missing;

    missing->names = tnd_realloc(missing->names, missing->count + 1, sizeof *missing->names);
    missing->names[missing->count++] = tnd_strdup(name);
}

/* Find the columns that go with the values: a key is text, weights are numbers, labels are
 * integers. */
static tundish_status
find_sides(struct observed *observed, const struct stage_config *config)
{
    for (int i = 0; i < SIDES; i++) {
        uint32_t index;
        tundish_status status;

        observed->sides[i] = -1;
        if (!spec_has_value(config->stage, side_parameters[i]))
            continue;
        status = content_column_named(config, side_parameters[i], &index);
        if (status != TUNDISH_OK)
            return status;
        observed->sides[i] = (int32_t)index;
        observed->side_dtypes[i] = config->input->columns[index].dtype;
        if ((i == 0) != (observed->side_dtypes[i] == TUNDISH_STRING) ||
            (i == 2 && !tnd_dtype_is_integer(observed->side_dtypes[i])))
            return stage_complain(config, "%s: '%s' is %s", side_parameters[i],
                                  config->input->columns[index].name,
                                  tnd_dtype_name(observed->side_dtypes[i]));
    }
    return TUNDISH_OK;
}

/* Two analyzers must not write the same artifact. */
static tundish_status
check_name(const struct observer *observer, const struct stage_config *config, const char *name)
{
    for (uint32_t i = 0; i < observer->observed_count; i++)
        if (strcmp(observer->observed[i]->name, name) == 0)
            return stage_complain(config,
                                  "%s: other statistics are already learned under the name '%s'; "
                                  "statistics gives it another name",
                                  config->stage->info->name, name);
    return TUNDISH_OK;
}

/* Register a column to learn from, and open its analyzer. */
static tundish_status
observe(struct observer *observer, const struct stage_config *config,
        const struct column_spec *column, const char *output, struct observed **ret_observed)
{
    const struct content_learning *learning = learned_learning_of(config->stage);
    const char *name = learned_name_of(config, output);
    struct observed *observed = tnd_zalloc(1, sizeof *observed);
    struct analyzer_config analyzer = {
        .content = config,
        .learning = learning,
        .column = &observed->spec,
        .folder = observer->folder,
        .cache_folder = observer->cache_folder,
        .thread_count = observer->thread_count,
        .memory = observer->memory,
    };
    tundish_status status = check_name(observer, config, name);

    observed->ops = analyzer_of(learning->kind);
    observed->name = tnd_strdup(name);
    observed->stage = (uint32_t)(config->stage - observer->stages);
    observed->spec = *column;
    observed->is_single = learning->is_keras;
    observed->state = tnd_zalloc(1, observed->ops->state_bytes);
    analyzer.name = observed->name;
    observer->observed =
        tnd_realloc(observer->observed, observer->observed_count + 1, sizeof(struct observed *));
    /* Registered even on failure: observer_close then frees it. */
    observer->observed[observer->observed_count++] = observed;
    if (status == TUNDISH_OK)
        status = find_sides(observed, config);
    if (status == TUNDISH_OK)
        status = observed->ops->open(observed->state, &analyzer);
    *ret_observed = observed;
    return status;
}

/* Some stages learn from values made of their columns, as text_vectorization does from tokens: open
 * the stage that makes them. */
static tundish_status
open_made(struct observer_stage *stage, const struct stage_config *config)
{
    const struct content_ops *made_by = stage->learning->made_by;
    struct stage_config asked = *config;
    bool batch_wide = false;

    if (made_by == NULL)
        return TUNDISH_OK;
    asked.missing = NULL;
    stage->made_state = tnd_zalloc(1, made_by->state_bytes);
    return made_by->open(stage->made_state, &asked, &stage->made_schema, &batch_wide);
}

static tundish_status
open_targets(struct observer_stage *stage, const struct stage_config *config, struct schema *schema)
{
    struct stage_config asked = *config;
    struct spec_stage plain = *config->stage;

    asked.missing = NULL;
    if (stage->learning->has_own_outputs) { /* its output is not one column for each target */
        int output = stage_parameter(plain.info, "output");
        tundish_status status;

        plain.arguments = tnd_alloc(plain.info->parameter_count * sizeof *plain.arguments);
        memcpy(plain.arguments, config->stage->arguments,
               plain.info->parameter_count * sizeof *plain.arguments);
        plain.arguments[output] = NULL;
        asked.stage = &plain;
        status = content_targets_open(&asked, schema, &stage->targets);
        free(plain.arguments);
        return status;
    }
    return content_targets_open(&asked, schema, &stage->targets);
}

/* The output column that names the artifact of a target. */
static const char *
output_of(const struct observer_stage *stage, const struct stage_config *config,
          const struct schema *schema, const struct content_target *target)
{
    const struct spec_value *output;

    if (!stage->learning->has_own_outputs)
        return schema->columns[target->output].name;
    output = spec_get(config->stage, "output");
    return output->kind == SPEC_LIST && output->count > 0 ? output->items[output->count - 1].text
                                                          : "";
}

/* Replace the stage's schema by the columns of this pass: its inputs stay, and all that it would
 * make becomes missing. */
static void
describe(struct observer_stage *stage, const struct stage_config *config, struct schema *schema)
{
    struct observer *observer = stage->observer;
    struct spec_names gone = { 0 };

    for (uint32_t i = 0; i < schema->count; i++)
        if (schema->columns[i].passed_from < 0 && !stage->learning->keeps_columns) {
            gone.names = tnd_realloc(gone.names, gone.count + 1, sizeof *gone.names);
            gone.names[gone.count++] = tnd_strdup(schema->columns[i].name);
        }
    schema_close(schema);
    *schema = (struct schema){ 0 };
    schema_pass_all(schema, config->input);
    for (size_t i = 0; i < gone.count; i++) {
        int32_t index = schema_find(schema, gone.names[i]);

        if (index >= 0)
            schema_remove(schema, (uint32_t)index);
        add_missing(observer, gone.names[i]);
    }
    if (stage->learning->has_own_outputs) {
        const struct spec_value *output = spec_get(config->stage, "output");

        for (uint32_t i = 0; output->kind == SPEC_LIST && i < output->count; i++)
            add_missing(observer, output->items[i].text);
    }
    spec_names_close(&gone);
}

static tundish_status
observer_stage_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                    bool *ret_batch_wide)
{
    struct observer_stage *stage = state;
    int64_t index = config->stage - observer_planning->stages;
    tundish_status status = TUNDISH_OK;

    *ret_batch_wide = false;
    stage->observer = observer_planning;
    stage->learning = learned_learning_of(config->stage);
    if (!observer_has_columns(observer_planning, config))
        return observer_block(observer_planning, index);
    status = open_made(stage, config);
    if (status == TUNDISH_OK)
        status = open_targets(stage, config, ret_schema);
    if (status != TUNDISH_OK)
        return status;
    stage->observed = tnd_zalloc((size_t)stage->targets.count + 1, sizeof(struct observed *));
    for (uint32_t i = 0; i < stage->targets.count && status == TUNDISH_OK; i++) {
        const struct content_target *target = &stage->targets.list[i];

        status = observe(observer_planning, config, &config->input->columns[target->input],
                         output_of(stage, config, ret_schema, target), &stage->observed[i]);
    }
    if (status == TUNDISH_OK) {
        observer_planning->is_observed[index] = true;
        describe(stage, config, ret_schema);
    }
    return status;
}

/* One more entry, in memory that is reset with the task. */
static struct observation *
add_observation(struct observations *observations, struct scratch *scratch)
{
    if (observations->count == observations->capacity) {
        struct observation *old = observations->list;

        observations->capacity = 2 * observations->capacity + 32;
        observations->list = scratch_array(scratch, observations->capacity, sizeof *old);
        if (observations->count > 0)
            memcpy(observations->list, old, observations->count * sizeof *old);
    }
    return &observations->list[observations->count++];
}

/* The values as doubles. Keras adapts layers in float32, so its stages first round to that. */
static const double *
numbers_of(const struct observed *observed, tundish_dtype dtype, const struct column *column,
           struct scratch *scratch)
{
    struct column narrow = *column;

    if (observed->is_single && dtype != TUNDISH_FLOAT32) {
        narrow.values = convert_column(TUNDISH_FLOAT32, dtype, column, scratch);
        dtype = TUNDISH_FLOAT32;
    }
    return convert_column(TUNDISH_FLOAT64, dtype, &narrow, scratch);
}

static void
fill_samples(const struct observed *observed, const struct column *column, tundish_dtype dtype,
             const struct frame *input, struct samples *samples)
{
    struct scratch *scratch = input->scratch;
    const struct column *sides[SIDES];

    for (int i = 0; i < SIDES; i++)
        sides[i] = observed->sides[i] >= 0 ? &input->columns[observed->sides[i]] : NULL;
    *samples = (struct samples){
        .column = column,
        .scratch = scratch,
        .key = sides[0],
        .weights = sides[1],
        .labels = sides[2],
    };
    if (sides[1] != NULL)
        samples->weight_numbers =
            convert_column(TUNDISH_FLOAT64, observed->side_dtypes[1], sides[1], scratch);
    if (sides[2] != NULL)
        samples->label_integers = lookup_integers(observed->side_dtypes[2], sides[2], scratch);
    if (dtype == TUNDISH_STRING) {
        samples->texts = column->values;
        return;
    }
    if (tnd_dtype_is_integer(dtype))
        samples->integers = lookup_integers(dtype, column, scratch);
    if (!observed->ops->takes_terms)
        samples->numbers = numbers_of(observed, dtype, column, scratch);
}

/* Run learning->made_by on the input. */
static tundish_status
make_inputs(const struct observer_stage *stage, const struct frame *input, struct frame *ret_frame)
{
    *ret_frame = *input;
    ret_frame->schema = &stage->made_schema;
    ret_frame->column_count = stage->made_schema.count;
    ret_frame->columns =
        scratch_array(input->scratch, stage->made_schema.count, sizeof *ret_frame->columns);
    memset(ret_frame->columns, 0, stage->made_schema.count * sizeof *ret_frame->columns);
    /* These values are not delivered: they must not go to the batch. */
    ret_frame->destinations = NULL;
    return stage->learning->made_by->apply(stage->made_state, input, ret_frame);
}

static tundish_status
observer_stage_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct observer_stage *stage = state;
    struct observations *observations = output->observations;
    struct frame made;
    tundish_status status = TUNDISH_OK;

    if (observations == NULL) /* evaluated for the order's sake, not to be learned from */
        return TUNDISH_OK;
    if (stage->made_state != NULL)
        status = make_inputs(stage, input, &made);
    for (uint32_t i = 0; i < stage->targets.count && status == TUNDISH_OK; i++) {
        const struct content_target *target = &stage->targets.list[i];
        const struct observed *observed = stage->observed[i];
        struct observation *observation = add_observation(observations, output->scratch);
        struct column *column = scratch_alloc(output->scratch, sizeof *column);

        *column = stage->made_state != NULL ? made.columns[target->output]
                                            : input->columns[target->input];
        observation->observed = observed;
        fill_samples(observed, column, observed->spec.dtype, input, &observation->samples);
        /* Counts that do not depend on the order are made here, in parallel; the rest waits for the
         * task's turn (pass.c). */
        if (observed->ops->count != NULL)
            status =
                observed->ops->count(observed->state, observations->thread, &observation->samples);
    }
    return status;
}

static void
observer_stage_close(void *state)
{
    struct observer_stage *stage = state;

    if (stage->made_state != NULL)
        stage->learning->made_by->close(stage->made_state);
    free(stage->made_state);
    schema_close(&stage->made_schema);
    free(stage->observed);
    content_targets_close(&stage->targets);
}

const struct content_ops observer_stage_ops = {
    .name = "stage",
    .state_bytes = sizeof(struct observer_stage),
    .open = observer_stage_open,
    .apply = observer_stage_apply,
    .close = observer_stage_close,
};
