/* content_text_vectorization.c - keras.layers.TextVectorization. */
#include <stdlib.h>
#include <string.h>

#include "content/learned/learning.h"
#include "content/terms/lookup.h"
#include "content/terms/lookup_counters.h"
#include "content/text/text_ids.h"
#include "core/memory.h"

struct vectorized {
    struct column_spec input;
    struct column_spec ids; /* the column of ids, one list of tokens for each text */
    uint32_t text_levels;   /* levels of the input above a text (or, unsplit, above a list) */
    bool is_vector;         /* TensorFlow has a vector here, not a ragged tensor: see pad */
    bool is_list;           /* tokens are in lists: one for each text, or the input's own */
    struct lookup_table table;
};

struct text_vectorization {
    struct content_targets targets;
    struct vectorized *vectorized; /* of each target */
    struct text_ids how;
    int64_t length; /* output_sequence_length; -1: none */
    bool ragged, sparse;
    struct lookup_rules lookup;
};

static void
read_text_rules(struct text_vectorization *state, const struct stage_config *config)
{
    const struct spec_value *standardize = lookup_given(config, "standardize");
    const struct spec_value *split = lookup_given(config, "split");
    const char *how = standardize == NULL ? "" : standardize->text;

    state->how.rules.lower = strncmp(how, "lower", strlen("lower")) == 0;
    state->how.rules.strip = strstr(how, "strip_punctuation") != NULL;
    state->how.rules.split = split == NULL                            ? SPLIT_NONE
                             : strcmp(split->text, "whitespace") == 0 ? SPLIT_WHITESPACE
                                                                      : SPLIT_CHARACTER;
    state->how.rules.most = -1;
    state->how.tokenize = text_tokenize_best();
}

/* An integer n means the widths 1 to n; a list names its widths. */
static void
read_ngrams(struct text_vectorization *state, const struct stage_config *config)
{
    const struct spec_value *ngrams = lookup_given(config, "ngrams");
    bool is_list = ngrams != NULL && ngrams->kind == SPEC_LIST;

    if (ngrams == NULL)
        return;
    state->how.width_count = is_list ? ngrams->count : (uint32_t)ngrams->integer;
    state->how.widths = tnd_zalloc(state->how.width_count + 1, sizeof *state->how.widths);
    for (uint32_t i = 0; i < state->how.width_count; i++)
        state->how.widths[i] = is_list ? ngrams->items[i].integer : (int64_t)i + 1;
}

static tundish_status
check_modes(const struct text_vectorization *state, const struct stage_config *config)
{
    bool is_int = state->lookup.mode == ENCODE_INT;
    const char *mode = spec_text(config->stage, "output_mode");
    tundish_status status = TUNDISH_OK;

    if (!is_int && state->length >= 0)
        status =
            stage_complain(config, "output_sequence_length needs output_mode int, not %s", mode);
    if (!is_int && state->ragged)
        status = stage_complain(config, "ragged needs output_mode int, not %s", mode);
    if (is_int && state->sparse)
        status = stage_complain(config, "sparse is not for output_mode int");
    if (state->lookup.pad_to_max_tokens && state->lookup.max_tokens == 0)
        status = stage_complain(config, "pad_to_max_tokens needs max_tokens");
    if (state->lookup.mode != ENCODE_TF_IDF && lookup_given(config, "idf_weights") != NULL)
        status = stage_complain(config, "idf_weights are for output_mode tf_idf");
    return status;
}

/* Read the parameters. The layer's lookup always has "" as mask and "[UNK]" for absent tokens. */
static tundish_status
read_parameters(struct text_vectorization *state, const struct stage_config *config,
                bool tokens_only)
{
    const struct spec_value *length = lookup_given(config, "output_sequence_length");
    const struct spec_value *max_tokens = lookup_given(config, "max_tokens");

    read_text_rules(state, config);
    read_ngrams(state, config);
    state->length = length == NULL ? -1 : length->integer;
    state->how.tokens_only = tokens_only;
    state->ragged = spec_bool(config->stage, "ragged");
    state->sparse = spec_bool(config->stage, "sparse");
    state->lookup = (struct lookup_rules){
        .keys = VOCAB_STRINGS,
        .has_no_terms = tokens_only,
        .pad_to_max_tokens = spec_bool(config->stage, "pad_to_max_tokens"),
        .max_tokens = max_tokens == NULL ? 0 : max_tokens->integer,
        .num_oov_indices = 1,
        .has_mask = true,
        .mask = bytes_of_text(""),
        .oov = bytes_of_text("[UNK]"),
    };
    encoding_mode_of(spec_text(config->stage, "output_mode"), &state->lookup.mode);
    if (!state->how.tokens_only && state->how.width_count == 0 && state->length >= 0 &&
        state->how.rules.split != SPLIT_NONE)
        state->how.rules.most = state->length; /* the rest is cut off later: do not tokenize it */
    return check_modes(state, config);
}

/* Whether the result has a level of tokens that the input lacks. */
static bool
makes_lists(const struct text_vectorization *state)
{
    return state->how.rules.split != SPLIT_NONE || state->how.width_count > 0 || state->length >= 0;
}

/* Check the input's shape. Keras squeezes a last dimension of 1 before it splits, and splitting
 * adds one of tokens. Without a split, the last dimension holds the tokens. */
static tundish_status
check_shape(const struct text_vectorization *state, const struct stage_config *config,
            struct vectorized *one)
{
    const struct column_spec *input = &one->input;
    bool is_split = state->how.rules.split != SPLIT_NONE;
    bool is_squeezed = is_split && input->rank > 1;

    if (input->dtype != TUNDISH_STRING || input->rank < 0)
        return stage_complain(config, "column '%s' is %s, but text_vectorization needs strings",
                              input->name, tnd_dtype_name(input->dtype));
    if (input->kind == TUNDISH_SPARSE)
        return stage_complain(config,
                              "text_vectorization: '%s' is sparse; use to_ragged or to_dense first",
                              input->name);
    if (is_split &&
        (input->kind != TUNDISH_DENSE || (is_squeezed && input->shape[input->rank - 1] != 1)))
        return stage_complain(config,
                              "text_vectorization can split only columns of rank 1 or with a last "
                              "dimension of 1; '%s' has another shape",
                              input->name);
    if (!is_split && state->how.width_count > 0 && input->rank == 0)
        return stage_complain(config, "ngrams of column '%s' need split", input->name);
    if (!is_split && state->length >= 0 && input->rank <= (int)config->depth)
        return stage_complain(config, "output_sequence_length of column '%s' needs split",
                              input->name);
    if (!is_split && input->kind == TUNDISH_RAGGED && input->rank != 2)
        return stage_complain(config,
                              "text_vectorization: '%s' is ragged in more than one dimension, "
                              "and not split",
                              input->name);
    one->text_levels = (uint32_t)input->rank - (is_squeezed ? 1 : 0);
    one->is_vector = is_split ? one->text_levels == 0 : input->kind == TUNDISH_DENSE;
    if (is_split && one->is_vector && state->length == 0)
        return stage_complain(
            config,
            "output_sequence_length of column '%s' must be at least 1 if each row is a single text",
            input->name);
    one->is_list = makes_lists(state) || input->kind == TUNDISH_RAGGED;
    if (!is_split && one->is_list)
        one->text_levels--; /* the last level is that of the tokens */
    return TUNDISH_OK;
}

/* Describe the ids before padding or encoding. */
static void
describe_ids(const struct text_vectorization *state, struct vectorized *one)
{
    one->ids = one->input;
    one->ids.dtype = TUNDISH_INT64;
    one->ids.has_range = false;
    if (!makes_lists(state))
        return;
    one->ids.rank = (int)one->text_levels + 1;
    one->ids.shape[one->text_levels] = -1;
    if (!one->is_vector && one->input.kind == TUNDISH_DENSE) {
        one->ids.kind = TUNDISH_RAGGED;
        one->ids.ragged_rank = (int)one->text_levels;
        for (uint32_t k = 0; state->how.rules.split != SPLIT_CHARACTER && k < one->text_levels; k++)
            one->ids.shape[k] = -1; /* not static in TensorFlow after a split at blanks */
    }
}

/* Describe the result. Padding to the longest list makes rows of a batch depend on each other. */
static tundish_status
describe(const struct text_vectorization *state, const struct stage_config *config,
         const struct vectorized *one, struct column_spec *column, bool *ret_batch_wide)
{
    const struct encoding encoding = {
        .mode = state->lookup.mode,
        .depth = one->table.depth,
        .dtype = state->lookup.mode == ENCODE_TF_IDF ? TUNDISH_FLOAT32 : TUNDISH_INT64,
        .sparse = state->sparse,
        .depth_weights = one->table.weights,
    };
    char *name = column->name;

    *column = one->ids;
    column->name = name;
    column->passed_from = -1;
    if (state->lookup.mode != ENCODE_INT)
        return encoding_open(&encoding, config, column, ret_batch_wide);
    column->has_range = true;
    column->minimum = 0;
    column->maximum = one->table.size - 1;
    if (!one->is_list)
        return TUNDISH_OK;
    if (!state->ragged && column->kind == TUNDISH_RAGGED) {
        column->kind = TUNDISH_DENSE;
        column->ragged_rank = 0;
        if (state->length < 0 && config->depth > 0)
            *ret_batch_wide = true;
    }
    if (!state->ragged && state->length >= 0)
        column->shape[column->rank - 1] = state->length;
    return TUNDISH_OK;
}

static tundish_status
open_columns(struct text_vectorization *state, const struct stage_config *config, bool tokens_only,
             struct schema *ret_schema, bool *ret_batch_wide)
{
    const struct spec_value *statistics = lookup_given(config, "statistics");
    tundish_status status = read_parameters(state, config, tokens_only);

    if (status == TUNDISH_OK)
        status = content_targets_open(config, ret_schema, &state->targets);
    if (status != TUNDISH_OK)
        return status;
    state->vectorized = tnd_zalloc(state->targets.count, sizeof *state->vectorized);
    for (uint32_t i = 0; i < state->targets.count && status == TUNDISH_OK; i++) {
        const struct content_target *target = &state->targets.list[i];
        struct column_spec *column = &ret_schema->columns[target->output];
        struct vectorized *one = &state->vectorized[i];

        one->input = config->input->columns[target->input];
        status = check_shape(state, config, one);
        if (status == TUNDISH_OK)
            status = lookup_table_open(config, &state->lookup, one->input.name,
                                       statistics != NULL ? statistics->text : column->name,
                                       i > 0 ? &state->vectorized[0].table : NULL, &one->table);
        if (status != TUNDISH_OK)
            break;
        describe_ids(state, one);
        if (state->how.tokens_only)
            continue;
        status = describe(state, config, one, column, ret_batch_wide);
    }
    return status;
}

static tundish_status
text_vectorization_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                        bool *ret_batch_wide)
{
    return open_columns(state, config, false, ret_schema, ret_batch_wide);
}

static tundish_status
tokens_open(void *state, const struct stage_config *config, struct schema *ret_schema,
            bool *ret_batch_wide)
{
    return open_columns(state, config, true, ret_schema, ret_batch_wide);
}

/* Set the levels above the lists of tokens. */
static void
set_levels(struct column *column, const struct column *input, uint32_t levels)
{
    *column = (struct column){ .count = input->count, .level_count = levels };
    memcpy(column->levels, input->levels, levels * sizeof *input->levels);
}

static void
add_lists(struct column *column, const struct id_lists *lists, int64_t list_count)
{
    column->levels[column->level_count++] =
        (struct level){ .uniform = -1, .splits = lists->splits };
    column->value_count = lists->splits[list_count];
    column->values = lists->ids;
}

/* Cut every list to output_sequence_length, in place. Ragged results are cut but not padded. */
static void
cut(struct id_lists *lists, int64_t list_count, int64_t length)
{
    int64_t used = 0;
    int64_t begin = 0;

    for (int64_t l = 0; l < list_count; l++) {
        int64_t end = lists->splits[l + 1];
        int64_t count = end - begin < length ? end - begin : length;

        memmove(&lists->ids[used], &lists->ids[begin], (size_t)count * sizeof *lists->ids);
        used += count;
        lists->splits[l + 1] = used;
        begin = end;
    }
}

/* The padded length of one element's lists: the given one, or the longest. */
static int64_t
padded_length(const struct text_vectorization *state, const struct id_lists *lists, int64_t begin,
              int64_t end)
{
    int64_t longest = 0;

    if (state->length >= 0)
        return state->length;
    for (int64_t l = begin; l < end; l++)
        if (lists->splits[l + 1] - lists->splits[l] > longest)
            longest = lists->splits[l + 1] - lists->splits[l];
    return longest;
}

static bool
has_empty_list(const struct id_lists *lists, int64_t list_count)
{
    for (int64_t l = 0; l < list_count; l++)
        if (lists->splits[l + 1] == lists->splits[l])
            return true;
    return false;
}

/* Pad the lists of each element with zeros to one length. Where TensorFlow has a vector instead of
 * a ragged tensor, it does not pad one without tokens. */
static void
pad(const struct text_vectorization *state, const struct vectorized *one,
    const struct id_lists *lists, int64_t list_count, struct frame *output, uint32_t index)
{
    struct column *column = &output->columns[index];
    int64_t *splits = scratch_array(output->scratch, (size_t)list_count + 1, sizeof *splits);
    bool keeps_empty = one->is_vector && has_empty_list(lists, list_count);
    int64_t *to;

    splits[0] = 0;
    for (int64_t e = 0; e < column->count; e++) {
        int64_t begin = e, end = e + 1, length;

        for (uint32_t k = 0; k < column->level_count; k++) {
            begin = level_begin(&column->levels[k], begin);
            end = level_begin(&column->levels[k], end);
        }
        length = padded_length(state, lists, begin, end);
        for (int64_t l = begin; l < end; l++)
            splits[l + 1] =
                splits[l] + (keeps_empty && lists->splits[l + 1] == lists->splits[l] ? 0 : length);
    }
    to = frame_values(output, index, (size_t)splits[list_count] * sizeof *to);
    text_ids_pad(lists, list_count, splits, to);
    column->levels[column->level_count++] = state->length >= 0 && !keeps_empty
                                                ? (struct level){ .uniform = state->length }
                                                : (struct level){ .uniform = -1, .splits = splits };
    column->value_count = splits[list_count];
    column->values = to;
}

static void
encode(const struct text_vectorization *state, const struct vectorized *one,
       const struct column *ids, struct frame *output, uint32_t index)
{
    const struct encoding encoding = {
        .mode = state->lookup.mode,
        .depth = one->table.depth,
        .dtype = state->lookup.mode == ENCODE_TF_IDF ? TUNDISH_FLOAT32 : TUNDISH_INT64,
        .sparse = state->sparse,
        .depth_weights = one->table.weights,
    };

    encoding_apply(&encoding, &one->ids, ids, NULL, output, index);
}

static void
vectorize(const struct text_vectorization *state, uint32_t i, const struct column *input,
          struct frame *output)
{
    const struct vectorized *one = &state->vectorized[i];
    uint32_t index = state->targets.list[i].output;
    bool is_list = one->is_list;
    int64_t list_count = is_list ? column_list_count(input, one->text_levels) : input->value_count;
    bool has_lists = is_list && state->how.rules.split == SPLIT_NONE;
    struct id_lists lists = text_ids_find(&state->how, &one->table, input,
                                          has_lists ? &input->levels[one->text_levels] : NULL,
                                          list_count, output->scratch);
    bool is_int = state->lookup.mode == ENCODE_INT;
    bool is_padded = is_int && is_list && !state->ragged && (state->length >= 0 || !one->is_vector);
    struct column ids;

    if (state->how.tokens_only) {
        if (is_list) {
            set_levels(&ids, input, one->text_levels);
            add_lists(&ids, &lists, list_count);
        } else {
            ids = *input;
        }
        ids.values = lists.tokens;
        output->columns[index] = ids;
        return;
    }
    lookup_count(output, i, (uint64_t)lists.used, lists.absent);
    if (is_int && state->ragged && state->length >= 0)
        cut(&lists, list_count, state->length);
    if (is_list) {
        set_levels(&ids, input, one->text_levels);
    } else {
        column_set_like(&ids, input, lists.ids);
    }
    if (is_padded) {
        output->columns[index] = ids;
        pad(state, one, &lists, list_count, output, index);
        return;
    }
    if (is_list)
        add_lists(&ids, &lists, list_count);
    if (is_int)
        output->columns[index] = ids;
    else
        encode(state, one, &ids, output, index);
}

static tundish_status
text_vectorization_apply(const void *memory, const struct frame *input, struct frame *output)
{
    const struct text_vectorization *state = memory;

    for (uint32_t i = 0; i < state->targets.count; i++)
        vectorize(state, i, &input->columns[state->targets.list[i].input], output);
    return TUNDISH_OK;
}

static void
text_vectorization_close(void *memory)
{
    struct text_vectorization *state = memory;

    for (uint32_t i = 0; state->vectorized != NULL && i < state->targets.count; i++)
        lookup_table_close(&state->vectorized[i].table);
    free(state->vectorized);
    free(state->how.widths);
    content_targets_close(&state->targets);
}

static void
text_vectorization_files(const void *memory,
                         void (*say)(void *context, const char *name, uint64_t content_hash),
                         void *context)
{
    const struct text_vectorization *state = memory;

    for (uint32_t i = 0; i < state->targets.count; i++)
        lookup_table_file(&state->vectorized[i].table, say, context);
}

static void
text_vectorization_vocabularies(const void *memory, content_say_vocabulary *say, void *context)
{
    const struct text_vectorization *state = memory;

    for (uint32_t i = 0; i < state->targets.count; i++)
        lookup_table_say(&state->vectorized[i].table, say, context);
}

static bool
text_vectorization_learns(const struct spec_stage *stage)
{
    return !spec_has_value(stage, "vocabulary");
}

static void
text_vectorization_specials(const struct spec_stage *stage, struct learned_specials *ret_specials)
{
    (void)stage;
    *ret_specials = (struct learned_specials){
        .keys = VOCAB_STRINGS,
        .num_oov_indices = 1,
        .has_mask = true,
        .mask = bytes_of_text(""),
        .oov = bytes_of_text("[UNK]"),
    };
}

/* The vocabulary is learned from this layer's own tokens: the same text rules, without a lookup. */
static const struct content_ops tokens_ops = {
    .name = "text_vectorization",
    .state_bytes = sizeof(struct text_vectorization),
    .open = tokens_open,
    .apply = text_vectorization_apply,
    .close = text_vectorization_close,
};

static const struct content_learning learning = {
    .kind = LEARNED_VOCABULARY,
    .is_keras = true,
    .is_needed = text_vectorization_learns,
    .made_by = &tokens_ops,
    .specials = text_vectorization_specials,
};

const struct content_ops content_text_vectorization = {
    .name = "text_vectorization",
    .takes_missing = true,
    .learning = &learning,
    .state_bytes = sizeof(struct text_vectorization),
    .open = text_vectorization_open,
    .apply = text_vectorization_apply,
    .close = text_vectorization_close,
    .files = text_vectorization_files,
    .vocabularies = text_vectorization_vocabularies,
};
