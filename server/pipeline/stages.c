/* stages.c - stages.def as a table. */
#include <stddef.h>
#include <string.h>

#include "pipeline/parameter_words.h"

/* Parameters that several stages share. */
#define NAMED DEFAULT(name, "value", TEXT | NOTHING, ANY_VALUE, "Name of the column.")
#define SEED                                                                                       \
    MAY(seed, INTEGER | NOTHING, ANY_VALUE,                                                        \
        "Gives the same order every time; combined with the file's seed.")
#define LAYER_SEED                                                                                 \
    MAY(seed, INTEGER | NOTHING, ANY_VALUE, "Gives the same numbers every time; used alone.")
#define FILENAMES                                                                                  \
    DEFAULT(filenames, "$value", PATHS | VARYING, ANY_VALUE,                                       \
            "A path or a list of paths, no patterns; inside interleave and flat_map, left out: "   \
            "the column `value` outside.")
#define COMPRESSION                                                                                \
    DEFAULT(compression_type, "\"\"", TEXT | NOTHING, ONE_OF("|GZIP|ZLIB"),                        \
            "How the files are compressed.")
#define PARALLEL_READS                                                                             \
    MAY(num_parallel_reads, INTEGER | AUTOTUNE | NOTHING, AT_LEAST(-1),                            \
        "Takes from so many files in turn, a record from each; AUTOTUNE (TensorFlow: as many as "  \
        "the machine's cores suggest): one after the other.")
#define BUFFER                                                                                     \
    MAY(buffer_size, INTEGER | NOTHING | NO_EFFECT, AT_LEAST(0),                                   \
        "Accepted; the server reads in blocks of its own size.")
#define PARALLEL                                                                                   \
    MAY(num_parallel_calls, INTEGER | AUTOTUNE | NOTHING | NO_EFFECT, AT_LEAST(-1),                \
        "Accepted; the server finds its own number of threads."),                                  \
        MAY(deterministic, BOOL | NOTHING | NO_EFFECT, ANY_VALUE,                                  \
            "Accepted; the order is always the same.")
#define CSV_DEFAULTS                                                                               \
    NEEDED(record_defaults, LIST | MAP, ANY_VALUE,                                                 \
           "For each field a dtype (the field is required), a default, or {values, dtype}; a "     \
           "list, or column to entry.")
#define CSV_NAMES                                                                                  \
    NEEDED(column_names, COLUMNS, ANY_VALUE, "Names of the columns; of the selected ones only.")
#define CSV_FORM                                                                                   \
    DEFAULT(field_delim, "\",\"", TEXT, ANY_VALUE, "The byte between fields."),                    \
        DEFAULT(use_quote_delim, "true", BOOL, ANY_VALUE, "Fields may stand in double quotes."),   \
        DEFAULT(na_value, "\"\"", TEXT, ANY_VALUE, "A field with this text counts as missing."),   \
        MAY(select_cols, INTEGERS | NOTHING, AT_LEAST(0), "The fields to take, from 0, rising.")
#define FEATURES                                                                                   \
    NEEDED(features, ENTRIES, ANY_VALUE,                                                           \
           "Column to {type: FixedLen, FixedLenSequence, VarLen or Ragged, dtype, shape, "         \
           "default_value, ...}; patterns may stand for columns.")
#define SERIALIZED                                                                                 \
    MAY(serialized, TEXT | NOTHING, ANY_VALUE,                                                     \
        "The column to parse; left out: `value`, or the only one.")
#define BATCH_SIZE NEEDED(batch_size, INTEGER | VARYING, AT_LEAST(1), "Elements of a batch.")
#define DROP_REMAINDER                                                                             \
    DEFAULT(drop_remainder, "false", BOOL, ANY_VALUE, "Leave out a last one that is not full.")
#define PADDING                                                                                    \
    MAY(padded_shapes, SHAPE | MAP | NOTHING, ANY_VALUE,                                           \
        "Column to the shape to pad to; null: the longest of the batch."),                         \
        MAY(padding_values, NUMBER | TEXT | BOOL | MAP | NOTHING, ANY_VALUE,                       \
            "Column to what it is padded with; left out: 0 or \"\".")
#define INNER_DATASET                                                                              \
    NEEDED(dataset, DATASET, ANY_VALUE,                                                            \
           "The stages to run on each element, whose columns they see as $name.")
#define IN_PLACE                                                                                   \
    MAY(columns, COLUMNS, ANY_VALUE, "The columns to work on; left out: the only one."),           \
        MAY(output, COLUMNS, ANY_VALUE,                                                            \
            "Name for the result of each column; left out: it replaces the column.")
#define JOINED                                                                                     \
    NEEDED(columns, COLUMNS, ANY_VALUE, "The columns to join, in order."),                         \
        NEEDED(output, TEXT, ANY_VALUE, "Name of the result.")
#define STATISTICS                                                                                 \
    MAY(statistics, TEXT | NOTHING, ANY_VALUE,                                                     \
        "Name of what is learned; left out: the output column's.")
#define MAX_TOKENS                                                                                 \
    MAY(max_tokens, INTEGER | NOTHING, AT_LEAST(2),                                                \
        "Most terms of the vocabulary, special ones included.")
#define IDF_WEIGHTS                                                                                \
    MAY(idf_weights, NUMBERS | NOTHING, ANY_VALUE,                                                 \
        "In tf_idf mode: inverse document frequency of each term.")
#define PAD_TO_MAX                                                                                 \
    DEFAULT(pad_to_max_tokens, "false", BOOL, ANY_VALUE,                                           \
            "Results as wide as max_tokens, though the vocabulary be smaller.")
#define SPARSE DEFAULT(sparse, "false", BOOL, ANY_VALUE, "Give a sparse column.")
#define ENCODED_MODE(default_, choices_)                                                           \
    DEFAULT(output_mode, default_, TEXT, ONE_OF(choices_), "The form of the result.")
#define LOOKUP_MODE ENCODED_MODE("int", "int|one_hot|multi_hot|count|tf_idf|binary|tf-idf")
#define SALT                                                                                       \
    MAY(salt, INTEGER | INTEGERS | NOTHING, ANY_VALUE, "One or two integers: a keyed hash.")
#define IGNORED_DTYPE                                                                              \
    MAY(dtype, DTYPE | NOTHING, ANY_VALUE, "Accepted for Keras' sake; changes nothing.")
#define OOV_METHOD                                                                                 \
    DEFAULT(oov_method, "floormod", TEXT, ONE_OF("floormod|farmhash"),                             \
            "How unknown integers are dealt to the numbers set aside; strings are hashed."),       \
        SALT
#define HEIGHT_WIDTH                                                                               \
    NEEDED(height, INTEGER, AT_LEAST(1), "Height of the result."),                                 \
        NEEDED(width, INTEGER, AT_LEAST(1), "Width of the result.")
#define DATA_FORMAT                                                                                \
    DEFAULT(data_format, "channels_last", TEXT | NOTHING, ONE_OF("channels_last|channels_first"),  \
            "Which dimension holds the channels.")
#define TRAINING                                                                                   \
    DEFAULT(training, "true", BOOL, ANY_VALUE, "false: nothing is random, the image stays.")
#define WARP                                                                                       \
    DEFAULT(fill_mode, "reflect", TEXT, ONE_OF("reflect|wrap|constant|nearest"),                   \
            "What lies outside the image."),                                                       \
        DEFAULT(interpolation, "bilinear", TEXT, ONE_OF("bilinear|nearest"), "How."), LAYER_SEED,  \
        DEFAULT(fill_value, "0.0", NUMBER, ANY_VALUE,                                              \
                "What lies outside with fill_mode constant."),                                     \
        DATA_FORMAT
#define VALUE_RANGE                                                                                \
    DEFAULT(value_range, "[0, 255]", NUMBERS, ANY_VALUE, "The lowest and the highest value.")
#define RESIZE_METHOD                                                                              \
    DEFAULT(method, "bilinear", TEXT,                                                              \
            ONE_OF("bilinear|nearest|bicubic|area|lanczos3|lanczos5|gaussian|mitchellcubic"),      \
            "How."),                                                                               \
        DEFAULT(antialias, "false", BOOL, ANY_VALUE, "Smooth when shrinking.")
#define CASE_ENCODING DEFAULT(encoding, "\"\"", TEXT, ONE_OF("|utf-8"), "\"\": ASCII letters only.")
#define LETTER_UNIT DEFAULT(unit, "BYTE", TEXT, ONE_OF("BYTE|UTF8_CHAR"), "What is counted.")
#define BUCKET_EPSILON                                                                             \
    MAY(epsilon, NUMBER | NOTHING, AT_LEAST(0),                                                    \
        "How exact the boundaries are; left out: 1 / num_buckets, at most 0.01.")
#define WEIGHTS MAY(weights, TEXT | NOTHING, ANY_VALUE, "A column of weights.")
#define ELEMENTWISE DEFAULT(elementwise, "false", BOOL, ANY_VALUE, "For each place in a row apart.")
#define OUTPUT_DTYPE                                                                               \
    MAY(output_dtype, DTYPE | NOTHING, ANY_VALUE,                                                  \
        "The result's dtype; left out: float32, or the column's if that is a float.")
#define OUTPUT_RANGE                                                                               \
    DEFAULT(output_min, "0.0", NUMBER, ANY_VALUE, "The least result."),                            \
        DEFAULT(output_max, "1.0", NUMBER, ANY_VALUE, "The greatest result.")
#define KEY NEEDED(key, TEXT, ANY_VALUE, "The column of keys.")
#define KEY_VOCABULARY                                                                             \
    MAY(key_vocabulary_filename, TEXT | NOTHING, ANY_VALUE,                                        \
        "Accepted: keys lie with what is learned. float32, as from a file.")

enum { LONG = 0, SHORT = 1, WHOLE = 2, FIRST = 4 };

/* Each list ends with a row without a name, so that a stage without parameters has a list too. */
#define READER(name_, form_, namesake_, help_, ...) ROW(name_, __VA_ARGS__)
#define ABSENT(name_, form_, namesake_, help_, remedy_, ...) ROW(name_, __VA_ARGS__)
#define ORDER(name_, form_, namesake_, help_, ...) ROW(name_, __VA_ARGS__)
#define CONTENT(name_, group_, form_, namesake_, help_, ...) ROW(name_, __VA_ARGS__)
#define ROW(name_, ...)                                                                            \
    static const struct parameter_info name_##_parameters[] = { __VA_ARGS__ __VA_OPT__(, ){ 0 } };
#include "pipeline/stages.def"
#undef ROW

#define ROW(name_, kind_, group_, form_, namesake_, help_, remedy_)                                \
    { .name = #name_,                                                                              \
      .kind = kind_,                                                                               \
      .group = group_,                                                                             \
      .namesake = namesake_,                                                                       \
      .help = help_,                                                                               \
      .absent = remedy_,                                                                           \
      .stands_first = (kind_) == STAGE_SOURCE || ((form_)&FIRST) != 0,                             \
      .has_short_form = ((form_)&SHORT) != 0,                                                      \
      .is_whole = ((form_)&WHOLE) != 0,                                                            \
      .parameter_count = sizeof name_##_parameters / sizeof name_##_parameters[0] - 1,             \
      .parameters = name_##_parameters },
#define READER(name_, form_, namesake_, help_, ...)                                                \
    ROW(name_, STAGE_SOURCE, "Sources", form_, namesake_, help_, NULL)
#define ABSENT(name_, form_, namesake_, help_, remedy_, ...)                                       \
    ROW(name_, STAGE_SOURCE, "Sources", form_, namesake_, help_, remedy_)
#define ORDER(name_, form_, namesake_, help_, ...)                                                 \
    ROW(name_, STAGE_ORDER, "Order", form_, namesake_, help_, NULL)
#define CONTENT(name_, group_, form_, namesake_, help_, ...)                                       \
    ROW(name_, STAGE_CONTENT, group_, form_, namesake_, help_, NULL)
const struct stage_info stage_table[] = {
#include "pipeline/stages.def"
};
const uint32_t stage_count = sizeof stage_table / sizeof stage_table[0];

const struct stage_info *
stage_find(const char *name)
{
    for (uint32_t i = 0; i < stage_count; i++)
        if (strcmp(stage_table[i].name, name) == 0)
            return &stage_table[i];
    return NULL;
}

int
stage_parameter(const struct stage_info *stage, const char *name)
{
    for (uint32_t i = 0; i < stage->parameter_count; i++)
        if (strcmp(stage->parameters[i].name, name) == 0)
            return (int)i;
    return -1;
}

bool
stage_runs_dataset(const struct stage_info *stage)
{
    return stage_parameter(stage, "dataset") >= 0;
}
