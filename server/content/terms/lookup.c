/* lookup.c - keras StringLookup and IntegerLookup: terms to indices, encoded or not, and back. */
#include "content/terms/lookup.h"

#include <stdlib.h>
#include <string.h>

#include "column/convert.h"
#include "column/literal.h"
#include "column/words.h"
#include "content/learned/learning.h"
#include "content/terms/lookup_counters.h"
#include "core/memory.h"

struct lookup {
    struct lookup_rules rules;
    bool sparse;
    struct content_targets targets;
    struct lookup_table *tables; /* of each target */
    struct column_spec *inputs;  /* of each target; their names belong to the input schema */
};

/* With at most FEW_VALUES values in a column, the wait for a cache miss is not hidden by other
 * lookups. */
enum { FEW_VALUES = 4 };

const struct spec_value *
lookup_given(const struct stage_config *config, const char *parameter)
{
    const struct spec_value *value = spec_get(config->stage, parameter);

    return value == NULL || value->kind == SPEC_NULL ? NULL : value;
}

tundish_status
lookup_salt(const struct stage_config *config, uint64_t ret_salt[2], bool *ret_given)
{
    const struct spec_value *salt = lookup_given(config, "salt");

    *ret_given = salt != NULL;
    if (salt == NULL)
        return TUNDISH_OK;
    if (salt->kind == SPEC_INTEGER) {
        ret_salt[0] = ret_salt[1] = (uint64_t)salt->integer;
        return TUNDISH_OK;
    }
    if (salt->kind != SPEC_LIST || salt->count != 2)
        return spec_complain(config->errors, salt->line, salt->column,
                             "salt must be an integer or a list of two");
    ret_salt[0] = (uint64_t)salt->items[0].integer;
    ret_salt[1] = (uint64_t)salt->items[1].integer;
    return TUNDISH_OK;
}

/* How absent terms choose one of several indices: strings by FarmHash, integers by floormod (as
 * Keras), and either by SipHash with a salt. */
static tundish_status
read_oov_method(struct lookup_rules *rules, const struct stage_config *config)
{
    bool is_farm = strcmp(spec_text(config->stage, "oov_method"), "farmhash") == 0;
    bool is_salted;
    tundish_status status = lookup_salt(config, rules->salt, &is_salted);

    rules->method = VOCAB_OOV_FARM;
    if (is_salted)
        rules->method = VOCAB_OOV_SIP;
    else if (rules->keys == VOCAB_INTEGERS && !is_farm)
        rules->method = VOCAB_OOV_FLOORMOD;
    if (status == TUNDISH_OK && is_salted && rules->keys == VOCAB_INTEGERS && !is_farm)
        return stage_complain(config, "salt needs oov_method: farmhash");
    return status;
}

/* Read the mask and out-of-vocabulary tokens, for this stage and for learning. */
static void
read_specials(const struct spec_stage *stage, enum vocab_keys keys,
              struct learned_specials *ret_specials)
{
    bool has_mask = spec_has_value(stage, "mask_token");
    const struct spec_value *mask = has_mask ? spec_get(stage, "mask_token") : NULL;
    const struct spec_value *oov = spec_get(stage, "oov_token");

    *ret_specials = (struct learned_specials){
        .keys = keys,
        .num_oov_indices = spec_int(stage, "num_oov_indices"),
        .has_mask = has_mask,
        .mask = bytes_of_text(""),
    };
    if (keys == VOCAB_INTEGERS) {
        ret_specials->mask_integer = has_mask ? mask->integer : 0;
        ret_specials->oov_integer = oov->integer;
        return;
    }
    ret_specials->oov = (struct byte_view){ (const uint8_t *)oov->text, oov->text_bytes };
    if (has_mask)
        ret_specials->mask = (struct byte_view){ (const uint8_t *)mask->text, mask->text_bytes };
}

static void
read_tokens(struct lookup_rules *rules, const struct stage_config *config)
{
    struct learned_specials specials;

    read_specials(config->stage, rules->keys, &specials);
    rules->num_oov_indices = specials.num_oov_indices;
    rules->has_mask = specials.has_mask;
    rules->mask_integer = specials.mask_integer;
    rules->oov_integer = specials.oov_integer;
    if (rules->keys == VOCAB_INTEGERS)
        return;
    rules->mask = literal_text((const char *)specials.mask.data, specials.mask.size);
    rules->oov = literal_text((const char *)specials.oov.data, specials.oov.size);
}

/* Refuse parameters that exclude each other. */
static tundish_status
check_modes(const struct lookup *lookup, const struct stage_config *config)
{
    const struct lookup_rules *rules = &lookup->rules;
    tundish_status status = TUNDISH_OK;

    if (lookup->sparse && rules->mode == ENCODE_INT)
        status = stage_complain(config, "sparse is not for output_mode int");
    if (rules->invert && rules->mode != ENCODE_INT)
        status = stage_complain(config, "invert needs output_mode int, not %s",
                                spec_text(config->stage, "output_mode"));
    if (rules->pad_to_max_tokens && rules->max_tokens == 0)
        status = stage_complain(config, "pad_to_max_tokens needs max_tokens");
    if (rules->mode != ENCODE_TF_IDF && lookup_given(config, "idf_weights") != NULL)
        status = stage_complain(config, "idf_weights are for output_mode tf_idf");
    return status;
}

static tundish_status
read_rules(struct lookup *lookup, const struct stage_config *config)
{
    struct lookup_rules *rules = &lookup->rules;
    const struct spec_value *max_tokens = lookup_given(config, "max_tokens");
    tundish_status status, modes;

    encoding_mode_of(spec_text(config->stage, "output_mode"), &rules->mode);
    rules->invert = spec_bool(config->stage, "invert");
    rules->pad_to_max_tokens = spec_bool(config->stage, "pad_to_max_tokens");
    rules->max_tokens = max_tokens != NULL ? max_tokens->integer : 0;
    lookup->sparse = spec_bool(config->stage, "sparse");
    read_tokens(rules, config);
    status = read_oov_method(rules, config);
    modes = check_modes(lookup, config);
    return status != TUNDISH_OK ? status : modes;
}

static tundish_status
check_input(const struct lookup_rules *rules, const struct stage_config *config,
            const struct column_spec *column)
{
    bool wants_integers = rules->invert || rules->keys == VOCAB_INTEGERS;

    if (rules->keys == VOCAB_INTEGERS && column->kind == TUNDISH_SPARSE)
        return stage_complain(config,
                              "integer_lookup: Keras does not look up sparse columns, and '%s' is "
                              "sparse; use to_ragged or to_dense first",
                              column->name);
    if (rules->mode == ENCODE_TF_IDF && column->rank > 2 &&
        lookup_given(config, "vocabulary") == NULL)
        return stage_complain(config,
                              "%s: tf_idf is learned from lists of terms, and '%s' has %d "
                              "dimensions: reshape it",
                              config->stage->info->name, column->name, column->rank);
    if (wants_integers == (column->dtype != TUNDISH_STRING))
        return TUNDISH_OK;
    return stage_complain(config, "column '%s' is %s, but %s works on %s", column->name,
                          tnd_dtype_name(column->dtype), config->stage->info->name,
                          wants_integers ? "numbers" : "string");
}

/* Describe the result of one target. */
static tundish_status
describe(const struct lookup *lookup, const struct lookup_table *table,
         const struct stage_config *config, struct column_spec *column, bool *ret_batch_wide)
{
    const struct lookup_rules *rules = &lookup->rules;
    const struct encoding encoding = {
        .mode = rules->mode,
        .depth = table->depth,
        .dtype = rules->mode == ENCODE_TF_IDF ? TUNDISH_FLOAT32 : TUNDISH_INT64,
        .sparse = lookup->sparse,
        .depth_weights = table->weights,
    };

    column->has_range = false;
    if (rules->mode != ENCODE_INT)
        return encoding_open(&encoding, config, column, ret_batch_wide);
    column->dtype = rules->invert && rules->keys == VOCAB_STRINGS ? TUNDISH_STRING : TUNDISH_INT64;
    if (!rules->invert) {
        column->has_range = true;
        column->minimum = 0;
        column->maximum = table->size - 1;
    }
    return TUNDISH_OK;
}

static tundish_status
lookup_open(struct lookup *lookup, enum vocab_keys keys, const struct stage_config *config,
            struct schema *ret_schema, bool *ret_batch_wide)
{
    const struct spec_value *statistics = lookup_given(config, "statistics");
    tundish_status status;

    lookup->rules.keys = keys;
    status = read_rules(lookup, config);
    if (status == TUNDISH_OK)
        status = content_targets_open(config, ret_schema, &lookup->targets);
    if (status != TUNDISH_OK)
        return status;
    lookup->tables = tnd_zalloc(lookup->targets.count, sizeof *lookup->tables);
    lookup->inputs = tnd_zalloc(lookup->targets.count, sizeof *lookup->inputs);
    for (uint32_t i = 0; i < lookup->targets.count && status == TUNDISH_OK; i++) {
        const struct content_target *target = &lookup->targets.list[i];
        struct column_spec *column = &ret_schema->columns[target->output];

        lookup->inputs[i] = config->input->columns[target->input];
        status = check_input(&lookup->rules, config, &lookup->inputs[i]);
        if (status == TUNDISH_OK)
            status = lookup_table_open(config, &lookup->rules, lookup->inputs[i].name,
                                       statistics != NULL ? statistics->text : column->name,
                                       i > 0 ? &lookup->tables[0] : NULL, &lookup->tables[i]);
        if (status == TUNDISH_OK)
            status = describe(lookup, &lookup->tables[i], config, column, ret_batch_wide);
    }
    return status;
}

const int64_t *
lookup_integers(tundish_dtype dtype, const struct column *column, struct scratch *scratch)
{
    int64_t *wide;

    if (dtype == TUNDISH_INT64 || dtype == TUNDISH_UINT64)
        return column->values;
    if (dtype == TUNDISH_BOOL || tnd_dtype_is_float(dtype)) /* truncated, as Keras does */
        return convert_column(TUNDISH_INT64, dtype, column, scratch);
    wide = scratch_array(scratch, (size_t)column->value_count, sizeof *wide);
#define WIDEN(type)                                                                                \
    for (int64_t i = 0; i < column->value_count; i++)                                              \
    wide[i] = ((const type *)column->values)[i]
    switch (dtype) {
    case TUNDISH_INT32:
        WIDEN(int32_t);
        break;
    case TUNDISH_UINT32:
        WIDEN(uint32_t);
        break;
    case TUNDISH_INT16:
        WIDEN(int16_t);
        break;
    case TUNDISH_UINT16:
        WIDEN(uint16_t);
        break;
    case TUNDISH_INT8:
        WIDEN(int8_t);
        break;
    default:
        WIDEN(uint8_t);
        break;
    }
#undef WIDEN
    return wide;
}

/* Keras refuses such a value, too, when the layer is called. */
static void
reject_unknown(const struct lookup *lookup, const struct column *column, int64_t at,
               const int64_t *integers, struct frame *output)
{
    int64_t element = column_element_of(column, at);
    const char *advice = "num_oov_indices=0 requires all inputs to be in the vocabulary, but found";
    const struct byte_view *terms = column->values;

    if (lookup->rules.keys == VOCAB_INTEGERS)
        frame_reject(output, element, "%s %lld; consider num_oov_indices=1", advice,
                     (long long)integers[at]);
    else
        frame_reject(output, element, "%s '%.*s'; consider num_oov_indices=1", advice,
                     (int)(terms[at].size < 200 ? terms[at].size : 200),
                     (const char *)terms[at].data);
}

/* Look up all values. A lookup stops at a refused value; reject its element and continue with the
 * next value. Returns how many are absent, if somebody counts. */
static uint64_t
find_each(const struct lookup *lookup, uint32_t i, const struct column *column,
          struct frame *output, int64_t *ret_indices)
{
    const struct lookup_table *table = &lookup->tables[i];
    const struct byte_view *terms = column->values;
    const int64_t *integers = NULL;
    uint64_t absent = 0, *count_of_absent = output->vocabularies != NULL ? &absent : NULL;
    int64_t done = 0;

    if (lookup->rules.keys == VOCAB_INTEGERS)
        integers = lookup_integers(lookup->inputs[i].dtype, column, output->scratch);
    while (done < column->value_count) {
        size_t left = (size_t)(column->value_count - done);
        const struct vocab_output to = { &ret_indices[done], TUNDISH_INT64, 1, count_of_absent };

        done += (int64_t)(integers != NULL
                              ? vocab_map_integers(table->vocab, &table->rule, integers + done,
                                                   left, &to)
                              : vocab_map(table->vocab, &table->rule, terms + done, left, &to));
        if (done < column->value_count) {
            reject_unknown(lookup, column, done, integers, output);
            ret_indices[done++] = 0;
        }
    }
    return absent;
}

/* For words_make: the index of a term; of one that is absent its complement, which is negative;
 * INT64_MIN if it is refused. */
static void
map_words(const void *context, const struct byte_view *terms, size_t count, int64_t *ret_values)
{
    const struct lookup_table *table = context;
    const struct vocab_rule *rule = &table->rule;
    int64_t lines[WORDS_BLOCK];

    for (size_t done = 0; done < count;) {
        const struct vocab_output to = { &ret_values[done], TUNDISH_INT64, 1, NULL };

        done += vocab_map(table->vocab, rule, terms + done, count - done, &to);
        if (done < count)
            ret_values[done++] = INT64_MIN;
    }
    vocab_lookup(table->vocab, terms, count, lines);
    for (size_t k = 0; k < count; k++)
        if (lines[k] < 0 && ret_values[k] != INT64_MIN &&
            !(rule->has_mask && bytes_are_equal(terms[k], rule->mask)))
            ret_values[k] = ~ret_values[k];
}

static struct words_maker
maker_of(const struct lookup *lookup, uint32_t i)
{
    const struct lookup_table *table = &lookup->tables[i];

    return (struct words_maker){ .key = table, .make = map_words, .context = table };
}

static bool
lookup_takes_words(const void *state, uint32_t column, struct words_maker *ret_maker)
{
    const struct lookup *lookup = state;

    for (uint32_t i = 0; i < lookup->targets.count; i++)
        if (lookup->targets.list[i].input == column)
            *ret_maker = maker_of(lookup, i);
    return true;
}

/* The same of terms that are words of a dictionary: each word is looked up once. */
static bool
find_words(const struct lookup *lookup, uint32_t i, const struct column *column,
           struct frame *output, int64_t *ret_indices, uint64_t *ret_absent)
{
    const struct words_maker maker = maker_of(lookup, i);
    int64_t all = 0;
    uint64_t absent = 0;
    bool is_refused = false;

    if (lookup->rules.keys != VOCAB_STRINGS ||
        !words_make(output->scratch, &maker, column->values, column->value_count, ret_indices))
        return false;
    for (int64_t k = 0; k < column->value_count; k++)
        all |= ret_indices[k];
    for (int64_t k = 0; k < column->value_count && all < 0; k++) {
        int64_t sign = ret_indices[k] >> 63;

        absent -= (uint64_t)sign;
        is_refused |= ret_indices[k] == INT64_MIN;
        ret_indices[k] ^= sign; /* the complement of what is negative */
    }
    for (int64_t k = 0; k < column->value_count && is_refused; k++)
        if (ret_indices[k] == INT64_MAX) { /* that of INT64_MIN */
            words_fill(output->scratch, (const struct byte_view *)column->values + k, 1, 1);
            reject_unknown(lookup, column, k, NULL, output);
            ret_indices[k] = 0;
        }
    *ret_absent = absent;
    return true;
}

static void
find_indices(const struct lookup *lookup, uint32_t i, const struct column *column,
             struct frame *output, int64_t *ret_indices)
{
    uint64_t absent;

    if (!find_words(lookup, i, column, output, ret_indices, &absent))
        absent = find_each(lookup, i, column, output, ret_indices);
    lookup_count(output, i, (uint64_t)column->value_count, absent);
}

/* Map indices back to terms. An index without a term gives the out-of-vocabulary token. */
static void
find_terms(const struct lookup *lookup, uint32_t i, const struct column *column,
           struct frame *output, uint32_t index)
{
    const struct lookup_rules *rules = &lookup->rules;
    const struct lookup_table *table = &lookup->tables[i];
    const int64_t *indices = lookup_integers(lookup->inputs[i].dtype, column, output->scratch);
    bool is_text = rules->keys == VOCAB_STRINGS;
    uint64_t absent = 0;
    void *values = frame_values(output, index,
                                (size_t)column->value_count *
                                    (is_text ? sizeof(struct byte_view) : sizeof(int64_t)));

    for (int64_t k = 0; k < column->value_count; k++) {
        bool is_mask = rules->has_mask && indices[k] == 0;
        int64_t line = indices[k] < table->rule.offset ? -1 : indices[k] - table->rule.offset;

        if (is_text) {
            struct byte_view *to = (struct byte_view *)values + k;

            if (is_mask)
                *to = rules->mask;
            else if (!vocab_term(table->vocab, line, to))
                absent++, *to = rules->oov;
        } else {
            int64_t *to = (int64_t *)values + k;

            if (is_mask)
                *to = rules->mask_integer;
            else if (!vocab_integer(table->vocab, line, to))
                absent++, *to = rules->oov_integer;
        }
    }
    lookup_count(output, i, (uint64_t)column->value_count, absent);
    column_set_like(&output->columns[index], column, values);
}

static void
encode(const struct lookup *lookup, uint32_t i, const struct column *column, struct frame *output,
       uint32_t index)
{
    const struct lookup_table *table = &lookup->tables[i];
    const struct encoding encoding = {
        .mode = lookup->rules.mode,
        .depth = table->depth,
        .dtype = lookup->rules.mode == ENCODE_TF_IDF ? TUNDISH_FLOAT32 : TUNDISH_INT64,
        .sparse = lookup->sparse,
        .depth_weights = table->weights,
    };
    int64_t *indices = scratch_array(output->scratch, (size_t)column->value_count, sizeof *indices);
    struct column numbered;

    find_indices(lookup, i, column, output, indices);
    column_set_like(&numbered, column, indices);
    encoding_apply(&encoding, &lookup->inputs[i], &numbered, NULL, output, index);
}

/* In a frame of one row, each column's lookup would wait for memory by itself. Compute all columns'
 * bucket addresses and prefetch them first. NULL: this frame does not need it. */
static struct vocab_asked *
ask_few(const struct lookup *lookup, const struct frame *input, const struct frame *output)
{
    bool asks = lookup->rules.mode == ENCODE_INT && output->vocabularies == NULL;
    struct vocab_asked *asked;

    if (lookup->rules.keys != VOCAB_STRINGS || lookup->rules.invert || lookup->targets.count < 2 ||
        input->count > FEW_VALUES)
        return NULL;
    asked = scratch_array(output->scratch, lookup->targets.count, sizeof *asked);
    for (uint32_t i = 0; i < lookup->targets.count; i++) {
        const struct column *column = &input->columns[lookup->targets.list[i].input];
        const struct lookup_table *table = &lookup->tables[i];
        const struct byte_view *terms = column->values;

        words_fill(output->scratch, terms, column->value_count, 1);
        asked[i].home = NULL;
        if (asks && column->value_count == 1 &&
            vocab_ask(table->vocab, &table->rule, terms[0], &asked[i]))
            continue;
        if (column->value_count <= FEW_VALUES)
            vocab_expect(table->vocab, terms, (size_t)column->value_count);
    }
    return asked;
}

static tundish_status
lookup_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct lookup *lookup = state;
    const struct vocab_asked *asked = ask_few(lookup, input, output);

    for (uint32_t i = 0; i < lookup->targets.count; i++) {
        const struct column *column = &input->columns[lookup->targets.list[i].input];
        uint32_t index = lookup->targets.list[i].output;

        if (lookup->rules.mode != ENCODE_INT) {
            encode(lookup, i, column, output, index);
        } else if (lookup->rules.invert) {
            find_terms(lookup, i, column, output, index);
        } else {
            int64_t *indices =
                frame_values(output, index, (size_t)column->value_count * sizeof *indices);

            if (asked != NULL && asked[i].home != NULL)
                indices[0] =
                    vocab_answer(lookup->tables[i].vocab, &lookup->tables[i].rule, &asked[i]);
            else
                find_indices(lookup, i, column, output, indices);
            column_set_like(&output->columns[index], column, indices);
        }
    }
    return TUNDISH_OK;
}

static void
lookup_files(const void *state, void (*say)(void *context, const char *name, uint64_t content_hash),
             void *context)
{
    const struct lookup *lookup = state;

    for (uint32_t i = 0; i < lookup->targets.count; i++)
        lookup_table_file(&lookup->tables[i], say, context);
}

static void
lookup_vocabularies(const void *state, content_say_vocabulary *say, void *context)
{
    const struct lookup *lookup = state;

    for (uint32_t i = 0; i < lookup->targets.count; i++)
        lookup_table_say(&lookup->tables[i], say, context);
}

static void
lookup_close(void *state)
{
    struct lookup *lookup = state;

    for (uint32_t i = 0; lookup->tables != NULL && i < lookup->targets.count; i++)
        lookup_table_close(&lookup->tables[i]);
    free(lookup->tables);
    free(lookup->inputs);
    free((void *)(uintptr_t)lookup->rules.mask.data);
    free((void *)(uintptr_t)lookup->rules.oov.data);
    content_targets_close(&lookup->targets);
}

static bool
learns(const struct spec_stage *stage)
{
    return !spec_has_value(stage, "vocabulary");
}

#define LOOKUP(stage_, keys_)                                                                      \
    static tundish_status stage_##_open(void *state, const struct stage_config *config,            \
                                        struct schema *ret_schema, bool *ret_batch_wide)           \
    {                                                                                              \
        return lookup_open(state, keys_, config, ret_schema, ret_batch_wide);                      \
    }                                                                                              \
                                                                                                   \
    static void stage_##_specials(const struct spec_stage *stage,                                  \
                                  struct learned_specials *ret_specials)                           \
    {                                                                                              \
        read_specials(stage, keys_, ret_specials);                                                 \
    }                                                                                              \
                                                                                                   \
    static const struct content_learning stage_##_learning = {                                     \
        .kind = LEARNED_VOCABULARY,                                                                \
        .is_keras = true,                                                                          \
        .is_needed = learns,                                                                       \
        .specials = stage_##_specials,                                                             \
    };                                                                                             \
                                                                                                   \
    const struct content_ops content_##stage_ = {                                                  \
        .name = #stage_,                                                                           \
        .takes_missing = true,                                                                     \
        .takes_words = lookup_takes_words,                                                         \
        .learning = &stage_##_learning,                                                            \
        .state_bytes = sizeof(struct lookup),                                                      \
        .open = stage_##_open,                                                                     \
        .apply = lookup_apply,                                                                     \
        .close = lookup_close,                                                                     \
        .files = lookup_files,                                                                     \
        .vocabularies = lookup_vocabularies,                                                       \
    }

LOOKUP(string_lookup, VOCAB_STRINGS);
LOOKUP(integer_lookup, VOCAB_INTEGERS);
