/* stages.c - stages.def as a table. */
#include <stddef.h>
#include <string.h>

#include "spec/parameter_words.h"
#include "spec/stage_rules.h"

/* Parameters that several stages share, so that their types and texts agree. */
#define NAMED                                                                                      \
    DEFAULT(name, "value", TEXT | NOTHING, ANY_VALUE, "Name of the column that the source gives.")
#define SEED                                                                                       \
    MAY(seed, INTEGER | NOTHING, ANY_VALUE,                                                        \
        "Makes the order reproducible; combined with the file's seed.")
#define LAYER_SEED                                                                                 \
    MAY(seed, INTEGER | NOTHING, ANY_VALUE,                                                        \
        "Makes the numbers reproducible; used without the file's seed."),                          \
        MAY(draws, TEXT | NOTHING | LATER, ANY_VALUE,                                              \
            "A name: stages with the same one draw alike. A row that one of them has drawn for "   \
            "gets the same numbers from the next, as an image and its mask need; else each stage " \
            "draws for itself. Rows that go through different ones (concatenate) draw in one "     \
            "sequence, as through one Keras layer."),                                              \
        MAY(redraw, BOOL | NOTHING | LATER, ANY_VALUE,                                             \
            "true: take the next numbers of `draws` even for a row that has got some, as a Keras " \
            "layer does that is called again. Default: false.")
#define PYTHON_WORKERS                                                                             \
    DEFAULT(                                                                                       \
        timeout, "60s", DURATION | NO_EFFECT, ANY_VALUE,                                           \
        "The longest that one call may take: the interpreter is then ended, and the row tried "    \
        "once more."),                                                                             \
        MAY(workers, INTEGER | NOTHING | NO_EFFECT, BETWEEN(1, 256),                               \
            "Interpreters at most; default: one for each processor."),                             \
        MAY(memory, SIZE | NOTHING | NO_EFFECT, ANY_VALUE,                                         \
            "The memory that an interpreter may have for itself, as 2GiB: one that has more is "   \
            "ended, and its rows tried once more. Default: any."),                                 \
        DEFAULT(warm, "start", TEXT | NO_EFFECT, ONE_OF("start|fork"),                             \
                "fork: interpreters are forks of one that has imported the module and made its "   \
                "object, and share that memory until they write to it, as where a data set holds " \
                "gigabytes, or imports take long. The module must start no threads when it is "    \
                "imported, and files that the object has open are those of all: open them later. " \
                "Memory that is shared counts for each."),                                         \
        MAY(python, TEXT | NOTHING | NO_EFFECT, ANY_VALUE,                                         \
            "The interpreter; default: that of the program that started the server, else "         \
            "python3.")
#define RESHUFFLE_FILES                                                                            \
    MAY(reshuffle_each_iteration, BOOL | NOTHING | LATER, ANY_VALUE,                               \
        "false: shuffle the files once, so that skip and take are the same files in every epoch. " \
        "Default: true.")
#define FILENAMES                                                                                  \
    DEFAULT(filenames, "$value", PATHS | VARYING, ANY_VALUE,                                       \
            "A path or a list of paths, without patterns; default inside interleave and "          \
            "flat_map: the outer column `value`.")
#define COMPRESSION                                                                                \
    DEFAULT(compression_type, "\"\"", TEXT | NOTHING, ONE_OF("|GZIP|ZLIB"),                        \
            "The compression of the files.")
#define PARALLEL_READS                                                                             \
    MAY(num_parallel_reads, INTEGER | AUTOTUNE | NOTHING, RULE(AT_LEAST(-1), parallel_reads),      \
        "The number of files to read in turn, one record from each; AUTOTUNE: 1 (in TensorFlow "   \
        "it depends on the machine's cores).")
#define BUFFER                                                                                     \
    MAY(buffer_size, INTEGER | NOTHING | NO_EFFECT, AT_LEAST(0),                                   \
        "Accepted and ignored: the server chooses the block size.")
#define PARALLEL                                                                                   \
    MAY(num_parallel_calls, INTEGER | AUTOTUNE | NOTHING | NO_EFFECT,                              \
        RULE(AT_LEAST(-1), parallel_calls),                                                        \
        "Accepted and ignored: the server chooses the number of threads."),                        \
        MAY(deterministic, BOOL | NOTHING | NO_EFFECT, ANY_VALUE,                                  \
            "Accepted and ignored: the order is always deterministic.")
#define CSV_DEFAULTS                                                                               \
    NEEDED(record_defaults, LIST | MAP, RULE(ANY_VALUE, record_defaults),                          \
           "For each field a dtype (the field is required), a default, or {values, dtype}; a "     \
           "list, or column to entry.")
#define CSV_NAMES NEEDED(column_names, COLUMNS, ANY_VALUE, "Names of the selected columns.")
#define CSV_FORM                                                                                   \
    DEFAULT(field_delim, "\",\"", TEXT, RULE(ANY_VALUE, field_delim), "The byte between fields."), \
        DEFAULT(use_quote_delim, "true", BOOL, ANY_VALUE, "Fields may be in double quotes."),      \
        DEFAULT(na_value, "\"\"", TEXT, ANY_VALUE, "A field with this text counts as missing."),   \
        MAY(select_cols, INTEGERS | NOTHING, RULE(AT_LEAST(0), select_cols),                       \
            "The fields to read, from 0, in ascending order.")
#define FEATURES                                                                                   \
    NEEDED(features, ENTRIES, RULE(ANY_VALUE, features),                                           \
           "Column to {type: FixedLen, FixedLenSequence, VarLen or Ragged, dtype, shape, "         \
           "default_value, ...}; column names may be patterns.")
#define SERIALIZED                                                                                 \
    MAY(serialized, TEXT | NOTHING, ANY_VALUE,                                                     \
        "The column to parse; default: `value`, or the only column.")
#define BATCH_SIZE NEEDED(batch_size, INTEGER | VARYING, AT_LEAST(1), "Elements of a batch.")
#define DROP_REMAINDER                                                                             \
    DEFAULT(drop_remainder, "false", BOOL, ANY_VALUE, "Drop the last batch if it is not full.")
#define PADDING                                                                                    \
    MAY(padded_shapes, SHAPE | MAP | NOTHING, RULE(ANY_VALUE, padded_shapes),                      \
        "Column to the shape to pad to; null: the longest of the batch."),                         \
        MAY(padding_values, NUMBER | TEXT | BOOL | MAP | NOTHING, RULE(ANY_VALUE, padding_values), \
            "Column to padding value; default: 0 or \"\".")
#define INNER_DATASET                                                                              \
    NEEDED(dataset, DATASET, ANY_VALUE,                                                            \
           "The stages to run on each element; $name is a column of this element.")
#define IN_PLACE                                                                                   \
    MAY(columns, COLUMNS, ANY_VALUE, "The columns to process; default: the only column."),         \
        MAY(output, COLUMNS, ANY_VALUE,                                                            \
            "Name of each column's result; default: the result replaces the column.")
#define JOINED                                                                                     \
    NEEDED(columns, COLUMNS, ANY_VALUE, "The columns to join, in order."),                         \
        NEEDED(output, TEXT, ANY_VALUE, "Name of the result.")
#define STATISTICS                                                                                 \
    MAY(statistics, TEXT | NOTHING, ANY_VALUE,                                                     \
        "Name of the learned statistics; default: the output column's.")
#define MAX_TOKENS                                                                                 \
    MAY(max_tokens, INTEGER | NOTHING, AT_LEAST(2),                                                \
        "The largest number of terms, including the special ones.")
#define IDF_WEIGHTS                                                                                \
    MAY(idf_weights, NUMBERS | NOTHING, ANY_VALUE,                                                 \
        "In tf_idf mode: the inverse document frequency of each term.")
#define PAD_TO_MAX                                                                                 \
    DEFAULT(pad_to_max_tokens, "false", BOOL, ANY_VALUE,                                           \
            "Make results as wide as max_tokens even if the vocabulary is smaller.")
#define SPARSE DEFAULT(sparse, "false", BOOL, ANY_VALUE, "Return a sparse column.")
#define ENCODED_MODE(default_, choices_)                                                           \
    DEFAULT(output_mode, default_, TEXT, ONE_OF(choices_), "The form of the result.")
#define LOOKUP_MODE ENCODED_MODE("int", "int|one_hot|multi_hot|count|tf_idf|binary|tf-idf")
#define SALT                                                                                       \
    MAY(salt, INTEGER | INTEGERS | NOTHING, RULE(ANY_VALUE, salt),                                 \
        "One or two integers: a keyed hash.")
#define IGNORED_DTYPE                                                                              \
    MAY(dtype, DTYPE | NOTHING, ANY_VALUE, "Accepted for compatibility with Keras; has no effect.")
#define OOV_METHOD                                                                                 \
    DEFAULT(oov_method, "floormod", TEXT, ONE_OF("floormod|farmhash"),                             \
            "How unknown integers are mapped to OOV indices; strings are hashed."),                \
        SALT
#define HEIGHT_WIDTH                                                                               \
    NEEDED(height, INTEGER, AT_LEAST(1), "Height of the result."),                                 \
        NEEDED(width, INTEGER, AT_LEAST(1), "Width of the result.")
#define DATA_FORMAT                                                                                \
    DEFAULT(data_format, "channels_last", TEXT | NOTHING, ONE_OF("channels_last|channels_first"),  \
            "The position of the channel dimension.")
#define TRAINING DEFAULT(training, "true", BOOL, ANY_VALUE, "false: return the image unchanged.")
#define WARP                                                                                       \
    DEFAULT(fill_mode, "reflect", TEXT, ONE_OF("reflect|wrap|constant|nearest"),                   \
            "The pixels outside the image."),                                                      \
        DEFAULT(interpolation, "bilinear", TEXT, ONE_OF("bilinear|nearest"),                       \
                "How pixels between pixels are computed."),                                        \
        LAYER_SEED,                                                                                \
        DEFAULT(fill_value, "0.0", NUMBER, ANY_VALUE,                                              \
                "The value outside the image with fill_mode constant."),                           \
        DATA_FORMAT
#define VALUE_RANGE                                                                                \
    DEFAULT(value_range, "[0, 255]", NUMBERS, RULE(ANY_VALUE, pair),                               \
            "The lowest and the highest value.")
#define RESIZE_METHOD                                                                              \
    DEFAULT(method, "bilinear", TEXT,                                                              \
            ONE_OF("bilinear|nearest|bicubic|area|lanczos3|lanczos5|gaussian|mitchellcubic"),      \
            "How pixels between pixels are computed."),                                            \
        DEFAULT(antialias, "false", BOOL, ANY_VALUE, "Smooth when shrinking.")
#define CASE_ENCODING                                                                              \
    DEFAULT(encoding, "\"\"", TEXT, ONE_OF("|utf-8"), "\"\": convert ASCII letters only.")
#define LETTER_UNIT DEFAULT(unit, "BYTE", TEXT, ONE_OF("BYTE|UTF8_CHAR"), "The unit of length.")
#define BUCKET_EPSILON                                                                             \
    MAY(epsilon, NUMBER | NOTHING, AT_LEAST(0),                                                    \
        "The error allowed for boundaries; default: 1 / num_buckets, at most 0.01.")
#define WEIGHTS MAY(weights, TEXT | NOTHING, ANY_VALUE, "A column of weights.")
#define ELEMENTWISE                                                                                \
    DEFAULT(elementwise, "false", BOOL, ANY_VALUE, "Separately for each position in a row.")
#define OUTPUT_DTYPE                                                                               \
    MAY(output_dtype, DTYPE | NOTHING, ANY_VALUE,                                                  \
        "The result's dtype; default: the column's if it is a float, else float32.")
#define OUTPUT_RANGE                                                                               \
    DEFAULT(output_min, "0.0", NUMBER, ANY_VALUE, "The lowest result."),                           \
        DEFAULT(output_max, "1.0", NUMBER, ANY_VALUE, "The highest result.")
#define KEY NEEDED(key, TEXT, ANY_VALUE, "The column of keys.")
#define KEY_VOCABULARY                                                                             \
    MAY(key_vocabulary_filename, TEXT | NOTHING, ANY_VALUE,                                        \
        "Accepted and ignored for keys, which are stored with the statistics; makes the result "   \
        "float32, as TensorFlow does with a file.")

/* How a stage may be written; stages.def explains the words. */
enum { LONG = 0, SHORT = 1, WHOLE = 2, FIRST = 4, ALONE = 8, BOUNDS = 16 };

/* Each list ends with a row without a name, so that a stage without parameters has a list too. */
#define READER(name_, form_, namesake_, help_, ...) ROW(name_, __VA_ARGS__)
#define ORDER(name_, form_, namesake_, help_, ...) ROW(name_, __VA_ARGS__)
#define CONTENT(name_, group_, form_, namesake_, help_, ...) ROW(name_, __VA_ARGS__)
#define ROW(name_, ...)                                                                            \
    static const struct parameter_info name_##_parameters[] = { __VA_ARGS__ __VA_OPT__(, ){ 0 } };
#include "spec/stages.def"
#undef ROW

#define ROW(name_, kind_, group_, form_, namesake_, help_)                                         \
    { .name = #name_,                                                                              \
      .kind = kind_,                                                                               \
      .group = group_,                                                                             \
      .namesake = namesake_,                                                                       \
      .help = help_,                                                                               \
      .stands_first = (kind_) == STAGE_SOURCE || ((form_)&FIRST) != 0,                             \
      .stands_alone = ((form_)&ALONE) != 0,                                                        \
      .has_short_form = ((form_)&SHORT) != 0,                                                      \
      .has_bounds_form = ((form_)&BOUNDS) != 0,                                                    \
      .is_whole = ((form_)&WHOLE) != 0,                                                            \
      .parameter_count = sizeof name_##_parameters / sizeof name_##_parameters[0] - 1,             \
      .parameters = name_##_parameters },
#define READER(name_, form_, namesake_, help_, ...)                                                \
    ROW(name_, STAGE_SOURCE, "Sources", form_, namesake_, help_)
#define ORDER(name_, form_, namesake_, help_, ...)                                                 \
    ROW(name_, STAGE_ORDER, "Order", form_, namesake_, help_)
#define CONTENT(name_, group_, form_, namesake_, help_, ...)                                       \
    ROW(name_, STAGE_CONTENT, group_, form_, namesake_, help_)
const struct stage_info stage_table[] = {
#include "spec/stages.def"
};
const uint32_t stage_count = sizeof stage_table / sizeof stage_table[0];

/* A linear search: a file has few stages, and is read once. */
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
