/* observe.c - a content stage that looks. */
#include "analyze/observe.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/each.h"
#include "column/convert.h"
#include "learned/learned.h"
#include "content/lookup.h"
#include "core/memory.h"

enum { SIDES = 3 }; /* key, weights, labels */

struct observed {
    const struct analyzer_ops *ops;
    void *state;
    char *name;
    uint32_t stage;          /* its index */
    struct column_spec spec; /* of the column; its name is not used */
    bool is_single;          /* Keras' numeric layers see float32, whatever the column is */
    tundish_dtype side_dtypes[SIDES];
    int32_t sides[SIDES]; /* columns of the stage's input, or -1 */
};

struct observation {
    const struct observed *observed;
    struct samples samples;
};

/* The state of the stage that looks. */
struct watch {
    struct observer *observer;
    struct content_targets targets;
    struct observed **observed;       /* of each target; the observer's */
    const struct content_ops *tokens; /* text_vectorization, which gives its tokens; or NULL */
    void *tokens_state;
    struct schema tokens_schema;
};

static const char *const side_parameters[SIDES] = { "key", "weights", "labels" };

/* --- What can be part of the plan ------------------------------------------------------------- */

static bool
is_one_of(const char *name, const char *const *list)
{
    for (; *list != NULL; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

static bool
is_missing(const struct observer *observer, const char *name)
{
    for (size_t i = 0; i < observer->missing->count; i++)
        if (strcmp(observer->missing->names[i], name) == 0)
            return true;
    return false;
}

/* Behind a stage that is being learned every element must come by, once and as it was. */
static bool
keeps_elements(const struct plan_node *node)
{
    static const char *const keeping[] = { "batch",    "padded_batch", "ragged_batch",
                                           "prefetch", "enumerate",    NULL };
    const struct spec_value *drop;

    if (!is_one_of(node->name, keeping))
        return false;
    if (node->stage == NULL || stage_parameter(node->stage->info, "drop_remainder") < 0)
        return true;
    drop = spec_get(node->stage, "drop_remainder");
    return drop == NULL || drop->kind != SPEC_BOOL || !drop->boolean;
}

/* Stages whose columns are one after the other: they do without those that are missing. */
static bool
does_without(const struct spec_stage *stage)
{
    static const char *const others[] = {
        "select",      "drop", "concat", "stack", "hashed_crossing", "parse_example", "decode_csv",
        "decode_json", "op",   "tfidf",  NULL
    };

    return stage_parameter(stage->info, "columns") >= 0 && !is_one_of(stage->info->name, others);
}

static bool
names_missing(const struct observer *observer, const struct spec_stage *stage)
{
    static const char *const parameters[] = { "key", "weights", "labels", "count_weights", NULL };

    for (size_t i = 0; parameters[i] != NULL; i++)
        if (analyzer_is_given(stage, parameters[i])) {
            const struct spec_value *value = spec_get(stage, parameters[i]);

            /* The key of a hash is no column but two integers. */
            if (value->kind == SPEC_TEXT && is_missing(observer, value->text))
                return true;
        }
    return false;
}

static bool
can_follow(const struct observer *observer, const struct plan_node *node,
           const struct content_config *config)
{
    if (observer->observed_count == 0)
        return true;
    if (config->input->count == 0)
        return false;
    if (node->order != NULL) {
        if (strcmp(node->name, "padded_batch") == 0 && observer->missing->count > 0 &&
            (analyzer_is_given(node->stage, "padded_shapes") ||
             analyzer_is_given(node->stage, "padding_values")))
            return false;
        return keeps_elements(node);
    }
    return observer->missing->count == 0 ||
           (does_without(node->stage) && !names_missing(observer, node->stage));
}

static const struct content_ops watch_ops;

/* The observer at work: the plan calls one thing after the other, in one thread. */
static struct observer *
observer_of(struct plan_learning *learning)
{
    return (struct observer *)(void *)learning;
}

static tundish_status
block(struct observer *observer, int64_t stage)
{
    observer->blocked = stage;
    return TUNDISH_E_PIPELINE;
}

static _Thread_local struct observer *planning; /* from `before` to the watch's open */

static tundish_status
before(struct plan_learning *learning, const struct plan_node *node,
       const struct content_config *config, const struct content_ops **ret_ops)
{
    struct observer *observer = observer_of(learning);
    int64_t index = node->stage == NULL ? -1 : node->stage - observer->stages;

    if (node->source != NULL || index < 0 || index >= observer->stage_count)
        return TUNDISH_OK;
    if (!can_follow(observer, node, config))
        return block(observer, index);
    if (node->order != NULL || node->content == NULL || !learned_is_needed(node->stage) ||
        observer->is_learned[index])
        return TUNDISH_OK;
    if (names_missing(observer, node->stage))
        return block(observer, index);
    planning = observer;
    *ret_ops = &watch_ops;
    return TUNDISH_OK;
}

/* --- Open ------------------------------------------------------------------------------------- */

static void
add_missing(struct observer *observer, const char *name)
{
    struct name_list *missing = observer->missing;

    missing->names = tnd_realloc(missing->names, missing->count + 1, sizeof *missing->names);
    missing->names[missing->count++] = tnd_strdup(name);
}

static tundish_status
find_sides(struct observed *observed, const struct content_config *config)
{
    for (int i = 0; i < SIDES; i++) {
        uint32_t index;
        tundish_status status;

        observed->sides[i] = -1;
        if (!analyzer_is_given(config->stage, side_parameters[i]))
            continue;
        status = content_column_named(config, side_parameters[i], &index);
        if (status != TUNDISH_OK)
            return status;
        observed->sides[i] = (int32_t)index;
        observed->side_dtypes[i] = config->input->columns[index].dtype;
        if ((i == 0) != (observed->side_dtypes[i] == TUNDISH_STRING) ||
            (i == 2 && !tnd_dtype_is_integer(observed->side_dtypes[i])))
            return content_complain(config, "%s: '%s' is %s", side_parameters[i],
                                    config->input->columns[index].name,
                                    tnd_dtype_name(observed->side_dtypes[i]));
    }
    return TUNDISH_OK;
}

static tundish_status
check_name(const struct observer *observer, const struct content_config *config, const char *name)
{
    for (uint32_t i = 0; i < observer->observed_count; i++)
        if (strcmp(observer->observed[i]->name, name) == 0)
            return content_complain(config,
                                    "%s: something else is learned under the name '%s' already; "
                                    "statistics gives it another",
                                    config->stage->info->name, name);
    return TUNDISH_OK;
}

/* One more column to learn from. */
static tundish_status
observe(struct observer *observer, const struct content_config *config,
        const struct column_spec *column, const char *output, struct observed **ret_observed)
{
    static const char *const single[] = { "normalization", "discretization", NULL };
    const char *name = learned_name_of(config, output);
    struct observed *observed = tnd_zalloc(1, sizeof *observed);
    struct analyzer_config analyzer = {
        .content = config,
        .column = &observed->spec,
        .folder = observer->folder,
        .cache_folder = observer->cache_folder,
        .thread_count = observer->thread_count,
        .memory = observer->memory,
    };
    tundish_status status = check_name(observer, config, name);

    observed->ops = analyzer_find(config->stage->info->name);
    observed->name = tnd_strdup(name);
    observed->stage = (uint32_t)(config->stage - observer->stages);
    observed->spec = *column;
    observed->is_single = is_one_of(config->stage->info->name, single);
    observed->state = tnd_zalloc(1, observed->ops->state_bytes);
    analyzer.name = observed->name;
    observer->observed =
        tnd_realloc(observer->observed, observer->observed_count + 1, sizeof(struct observed *));
    observer->observed[observer->observed_count++] = observed;
    if (status == TUNDISH_OK)
        status = find_sides(observed, config);
    if (status == TUNDISH_OK)
        status = observed->ops->open(observed->state, &analyzer);
    *ret_observed = observed;
    return status;
}

/* text_vectorization learns from its own tokens. */
static tundish_status
open_tokens(struct watch *watch, const struct content_config *config)
{
    struct content_config asked = *config;
    bool batch_wide = false;

    if (strcmp(config->stage->info->name, "text_vectorization") != 0)
        return TUNDISH_OK;
    asked.tokens_only = true;
    asked.missing = NULL;
    watch->tokens = content_find("text_vectorization");
    watch->tokens_state = tnd_zalloc(1, watch->tokens->state_bytes);
    return watch->tokens->open(watch->tokens_state, &asked, &watch->tokens_schema, &batch_wide);
}

/* tfidf has outputs of its own: its weights name what is learned. */
static const char *
tfidf_weights(const struct spec_stage *stage)
{
    const struct spec_value *output = spec_get(stage, "output");

    return output->kind == SPEC_LIST && output->count == 2 ? output->items[1].text : "";
}

static tundish_status
open_targets(struct watch *watch, const struct content_config *config, struct schema *schema)
{
    struct content_config asked = *config;
    struct spec_stage plain = *config->stage;

    asked.missing = NULL;
    if (strcmp(config->stage->info->name, "tfidf") == 0) { /* its output is no list of targets */
        int output = stage_parameter(plain.info, "output");
        tundish_status status;

        plain.arguments = tnd_alloc(plain.info->parameter_count * sizeof *plain.arguments);
        memcpy(plain.arguments, config->stage->arguments,
               plain.info->parameter_count * sizeof *plain.arguments);
        plain.arguments[output] = NULL;
        asked.stage = &plain;
        status = content_targets_open(&asked, schema, &watch->targets);
        free(plain.arguments);
        return status;
    }
    return content_targets_open(&asked, schema, &watch->targets);
}

/* Are all the columns there that the stage learns from? A glob finds what there is, so one that a
 * missing column would match means that it is not complete. */
static bool
is_complete(const struct observer *observer, const struct content_config *config)
{
    const struct spec_value *columns = spec_get(config->stage, "columns");
    uint32_t count = columns == NULL ? 0 : columns->kind == SPEC_LIST ? columns->count : 1;

    if (observer->missing->count == 0)
        return true;
    if (columns == NULL)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct spec_value *item = columns->kind == SPEC_LIST ? &columns->items[i] : columns;
        struct name_list names = { 0 };
        struct spec_errors errors = { 0 };
        bool complete = true;

        if (strpbrk(item->text, "*?[") == NULL) {
            if (spec_expand_columns(item, NULL, 0, &errors, &names) == TUNDISH_OK)
                for (size_t n = 0; n < names.count; n++)
                    complete &= !is_missing(observer, names.names[n]);
        } else {
            for (size_t n = 0; n < observer->missing->count; n++)
                complete &= !spec_name_matches(item->text, observer->missing->names[n]);
        }
        name_list_close(&names);
        spec_errors_close(&errors);
        if (!complete)
            return false;
    }
    return true;
}

/* What the stage would give is missing from here on; what it only looks at stays. */
static void
describe(struct watch *watch, const struct content_config *config, struct schema *schema)
{
    struct observer *observer = watch->observer;
    struct name_list gone = { 0 };
    bool is_covariance = strcmp(config->stage->info->name, "covariance") == 0;

    for (uint32_t i = 0; i < schema->count; i++)
        if (schema->columns[i].passed_from < 0 && !is_covariance) {
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
    if (strcmp(config->stage->info->name, "tfidf") == 0) {
        const struct spec_value *output = spec_get(config->stage, "output");

        for (uint32_t i = 0; output->kind == SPEC_LIST && i < output->count; i++)
            add_missing(observer, output->items[i].text);
    }
    name_list_close(&gone);
}

static tundish_status
watch_open(void *state, const struct content_config *config, struct schema *ret_schema,
           bool *ret_batch_wide)
{
    struct watch *watch = state;
    bool is_tfidf = strcmp(config->stage->info->name, "tfidf") == 0;
    int64_t index = config->stage - planning->stages;
    tundish_status status = TUNDISH_OK;

    *ret_batch_wide = false;
    watch->observer = planning;
    if (!is_complete(planning, config))
        return block(planning, index);
    status = open_tokens(watch, config);
    if (status == TUNDISH_OK)
        status = open_targets(watch, config, ret_schema);
    if (status != TUNDISH_OK)
        return status;
    watch->observed = tnd_zalloc((size_t)watch->targets.count + 1, sizeof(struct observed *));
    for (uint32_t i = 0; i < watch->targets.count && status == TUNDISH_OK; i++) {
        const struct content_target *target = &watch->targets.list[i];

        status = observe(planning, config, &config->input->columns[target->input],
                         is_tfidf ? tfidf_weights(config->stage)
                                  : ret_schema->columns[target->output].name,
                         &watch->observed[i]);
    }
    if (status == TUNDISH_OK) {
        planning->is_observed[index] = true;
        describe(watch, config, ret_schema);
    }
    return status;
}

/* --- Apply ------------------------------------------------------------------------------------ */

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
        samples->label_integers = integers_of(observed->side_dtypes[2], sides[2], scratch);
    if (dtype == TUNDISH_STRING) {
        samples->texts = column->values;
        return;
    }
    if (tnd_dtype_is_integer(dtype))
        samples->integers = integers_of(dtype, column, scratch);
    samples->numbers = numbers_of(observed, dtype, column, scratch);
}

/* The columns of text_vectorization's tokens. */
static tundish_status
make_tokens(const struct watch *watch, const struct frame *input, struct frame *ret_frame)
{
    *ret_frame = *input;
    ret_frame->schema = &watch->tokens_schema;
    ret_frame->column_count = watch->tokens_schema.count;
    ret_frame->columns =
        scratch_array(input->scratch, watch->tokens_schema.count, sizeof *ret_frame->columns);
    memset(ret_frame->columns, 0, watch->tokens_schema.count * sizeof *ret_frame->columns);
    ret_frame->destinations = NULL;
    return watch->tokens->apply(watch->tokens_state, input, ret_frame);
}

static tundish_status
watch_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct watch *watch = state;
    struct observations *observations = output->observations;
    struct frame tokens;
    tundish_status status = TUNDISH_OK;

    if (observations == NULL) /* evaluated for the order's sake, not to be learned from */
        return TUNDISH_OK;
    if (watch->tokens != NULL)
        status = make_tokens(watch, input, &tokens);
    for (uint32_t i = 0; i < watch->targets.count && status == TUNDISH_OK; i++) {
        const struct content_target *target = &watch->targets.list[i];
        const struct observed *observed = watch->observed[i];
        struct observation *observation = add_observation(observations, output->scratch);
        struct column *column = scratch_alloc(output->scratch, sizeof *column);

        *column =
            watch->tokens != NULL ? tokens.columns[target->output] : input->columns[target->input];
        observation->observed = observed;
        fill_samples(observed, column, observed->spec.dtype, input, &observation->samples);
        if (observed->ops->count != NULL)
            status =
                observed->ops->count(observed->state, observations->thread, &observation->samples);
    }
    return status;
}

static void
watch_close(void *state)
{
    struct watch *watch = state;

    if (watch->tokens_state != NULL)
        watch->tokens->close(watch->tokens_state);
    free(watch->tokens_state);
    schema_close(&watch->tokens_schema);
    free(watch->observed);
    content_targets_close(&watch->targets);
}

static const struct content_ops watch_ops = {
    .name = "watch",
    .state_bytes = sizeof(struct watch),
    .open = watch_open,
    .apply = watch_apply,
    .close = watch_close,
};

/* --- The observer ----------------------------------------------------------------------------- */

void
observer_open(struct observer *observer)
{
    observer->missing = tnd_zalloc(1, sizeof *observer->missing);
    observer->is_observed = tnd_zalloc((size_t)observer->stage_count + 1, sizeof(bool));
    observer->blocked = -1;
    observer->learning = (struct plan_learning){ .before = before, .missing = observer->missing };
}

void
observer_close(struct observer *observer)
{
    for (uint32_t i = 0; i < observer->observed_count; i++) {
        struct observed *observed = observer->observed[i];

        observed->ops->close(observed->state);
        free(observed->state);
        free(observed->name);
        free(observed);
    }
    free(observer->observed);
    free(observer->is_observed);
    if (observer->missing != NULL)
        name_list_close(observer->missing);
    free(observer->missing);
}

const char *
observer_name_of(const struct observer *observer, uint32_t i)
{
    return observer->observed[i]->name;
}

uint32_t
observer_stage_of(const struct observer *observer, uint32_t i)
{
    return observer->observed[i]->stage;
}

tundish_status
observations_feed(const struct observations *observations)
{
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < observations->count && status == TUNDISH_OK; i++) {
        const struct observation *observation = &observations->list[i];

        if (observation->observed->ops->feed != NULL)
            status = observation->observed->ops->feed(observation->observed->state,
                                                      &observation->samples);
    }
    return status;
}

/* Columns have nothing to do with each other. */
static tundish_status
finish_column(void *context, uint32_t column)
{
    struct observed *observed = ((struct observer *)context)->observed[column];

    return observed->ops->finish(observed->state);
}

tundish_status
observer_finish(struct observer *observer)
{
    return each_run(observer->observed_count, observer->thread_count, finish_column, observer);
}
