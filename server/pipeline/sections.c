/* sections.c - the mappings that are no stages, stated in the same words. */
#include <stddef.h>

#include "pipeline/parameter_words.h"

#define SECTION(name_, title_, help_, ...)                                                         \
    static const struct parameter_info name_##_parameters[] = { __VA_ARGS__ };                     \
    const struct stage_info section_##name_ = { .name = title_,                                    \
                                                .group = "Pipeline file",                          \
                                                .help = help_,                                     \
                                                .parameter_count = sizeof name_##_parameters /     \
                                                                   sizeof name_##_parameters[0],   \
                                                .parameters = name_##_parameters };

SECTION(file, "pipeline file", "What a pipeline file holds.",
        MAY(seed, INTEGER | NOTHING, ANY_VALUE,
            "Makes everything random the same every time, as tf.random.set_seed."),
        MAY(datasets, ENTRIES | NOTHING, ANY_VALUE,
            "Name to stages: parts to be mentioned by name."),
        NEEDED(streams, ENTRIES, ANY_VALUE, "Name to stream."),
        MAY(learn_from, TEXT | NOTHING, ANY_VALUE,
            "The stream that `tundish analyze` learns from; left out: the only one, else train."))

SECTION(stream, "stream", "What is served, and how.",
        NEEDED(dataset, DATASET, ANY_VALUE, "The stages, first a source."),
        MAY(distribute, ENTRIES | NOTHING, ANY_VALUE, "How batches are dealt to replicas."),
        MAY(deliver, ENTRIES | NOTHING, ANY_VALUE, "How batches are handed over."))

SECTION(
    distribute, "distribute", "How batches are dealt to replicas.",
    DEFAULT(replicas, "1", INTEGER, BETWEEN(1, 4096),
            "Replicas on each worker. Each column of a batch is shared among them by its own "
            "first dimension; so is what a program writes and no batch follows."),
    DEFAULT(auto_shard, "AUTO", TEXT, ONE_OF("AUTO|FILE|DATA|HINT|OFF"),
            "What is dealt between workers."),
    DEFAULT(rebatch, "split", TEXT, ONE_OF("split|carry|tensorflow"),
            "How a global batch is cut: as the guide says, carrying rows over, or as "
            "TensorFlow 2.21 would choose."),
    DEFAULT(from_function, "false", BOOL, ANY_VALUE,
            "As distribute_datasets_from_function: nothing is rebatched or sharded."),
    DEFAULT(delivery, "lanes", TEXT, ONE_OF("lanes|queue|broadcast"),
            "One lane for each replica, one queue, or one lane that all read."),
    DEFAULT(
        files, "shared", TEXT, ONE_OF("shared|local"),
        "Whether every node sees every file, or each has some in its own folder: owners read, and "
        "rows travel to the node that delivers them."),
    DEFAULT(groups, "1", INTEGER, BETWEEN(1, 4096),
            "Groups that share the session; the first batch waits for them."),
    DEFAULT(drop_remainder_step, "false", BOOL, ANY_VALUE,
            "End with the last full step rather than with empty batches."),
    MAY(evaluation_shards, INTEGER | TEXT | NOTHING, BETWEEN(1, 1000000),
        "Cut the stream into so many parts, each read whole by one reader; auto: five times "
        "the readers seen at start."))

SECTION(
    deliver, "deliver", "How batches are handed over.",
    DEFAULT(slots, "8", INTEGER, BETWEEN(3, 65536), "Batches a lane can hold."),
    MAY(lane_bytes, SIZE | NOTHING, ANY_VALUE,
        "Memory of a lane's batches; left out: computed from shapes and the first batches, as they "
        "are stored."),
    MAY(max_batch_bytes, SIZE | NOTHING, ANY_VALUE,
        "A larger batch is an error, and a compressed text that becomes larger."),
    MAY(memory_limit, SIZE | NOTHING, ANY_VALUE,
        "Most memory for rows held back, for all lanes, and for what a batch's texts unpack to; "
        "the "
        "limits of the machine and of control groups hold anyway."),
    DEFAULT(memory, "shm", TEXT, ONE_OF("shm|memfd"), "What batches are kept in."),
    DEFAULT(huge_pages, "false", BOOL, ANY_VALUE, "Ask for huge pages."),
    DEFAULT(
        compression, "auto", TEXT, ANY_VALUE,
        "auto, none, narrow, zstd or zstd:LEVEL. auto: none while there is memory; where lanes "
        "take over an eighth of what they may, column by column, what was measured to cost less "
        "than it saves; where they take more than they may, what saves most for its time."),
    DEFAULT(checksums, "false", BOOL, ANY_VALUE, "A CRC32C for each column."),
    DEFAULT(on_error, "stop", TEXT, ANY_VALUE,
            "stop; skip: leave out bad rows; skip:LIMIT: so many at most. A row is bad when it is "
            "delivered: one that skip, shard, take or drop_remainder leaves out is never made. Of "
            "rows of one batch, those are bad whose shape is not the first one's."),
    DEFAULT(slow_group, "block", TEXT, ONE_OF("block|detach"),
            "Wait for the slowest group, or cut it off."),
    MAY(group_wait, DURATION | NOTHING, ANY_VALUE,
        "How long the first batch waits for the groups, and after the server was started again "
        "those who are back for those who are not; left out: for ever."),
    DEFAULT(rejoin, "30s", DURATION, ANY_VALUE,
            "How long a dead replica's place is kept for a successor."),
    MAY(epochs, INTEGER | NOTHING, AT_LEAST(1), "The stream ends after so many."),
    MAY(widen, ENTRIES | NOTHING, ANY_VALUE,
        "Column to {dtype, scale, offset}: the consumer makes x * scale + offset."))

SECTION(widen, "widen", "What the consumer makes of a column.",
        NEEDED(dtype, TEXT, ONE_OF("float32|float16|bfloat16|float64"), "The dtype to make."),
        DEFAULT(scale, "1", NUMBER | NUMBERS, ANY_VALUE,
                "The factor; a list runs along the last axis."),
        DEFAULT(offset, "0", NUMBER | NUMBERS, ANY_VALUE,
                "What is added; a list runs along the last axis."))

SECTION(tensor, "column", "A column's values.",
        MAY(values, ANYTHING | VARYING, ANY_VALUE, "Nested lists."),
        MAY(npy, TEXT, ANY_VALUE, "A file written by numpy.save."),
        MAY(dtype, DTYPE, ANY_VALUE,
            "Their dtype; left out: int32, int64 if too large, float32, "
            "bool or string."))

SECTION(program_spec, "spec", "A column that a program writes.",
        NEEDED(dtype, DTYPE, ANY_VALUE, "Its dtype."),
        DEFAULT(shape, "[]", SHAPE, ANY_VALUE, "Its shape."))

SECTION(field, "record_defaults", "A field's default and dtype.",
        NEEDED(values, ANYTHING, ANY_VALUE, "The default; [] for none: the field is required."),
        NEEDED(dtype, TEXT, ONE_OF("float32|float64|int32|int64|string"), "Its dtype."))

#define FEATURE_TYPE NEEDED(type, TEXT, ANY_VALUE, "Which of these it is.")
#define FEATURE_DTYPE                                                                              \
    NEEDED(dtype, TEXT, ONE_OF("int64|float32|string"), "The dtype of its values.")
#define FEATURE_KEY                                                                                \
    MAY(key, TEXT, ANY_VALUE, "Its name in the record, where the column is called otherwise.")
#define FEATURE_SHAPE NEEDED(shape, SHAPE, ANY_VALUE, "The shape in each record.")

static const struct parameter_info fixed_parameters[] = {
    FEATURE_TYPE,
    FEATURE_DTYPE,
    FEATURE_SHAPE,
    MAY(default_value, ANYTHING, ANY_VALUE, "What a record without it has; left out: an error."),
    FEATURE_KEY,
};
static const struct parameter_info sequence_parameters[] = {
    FEATURE_TYPE,
    FEATURE_DTYPE,
    FEATURE_SHAPE,
    DEFAULT(allow_missing, "false", BOOL, ANY_VALUE, "Must be true."),
    MAY(default_value, ANYTHING, ANY_VALUE, "What short sequences are padded with."),
    FEATURE_KEY,
};
static const struct parameter_info var_parameters[] = {
    FEATURE_TYPE,
    FEATURE_DTYPE,
    FEATURE_KEY,
};
static const struct parameter_info ragged_parameters[] = {
    FEATURE_TYPE,
    FEATURE_DTYPE,
    MAY(value_key, TEXT | NOTHING, ANY_VALUE,
        "The values' name in the record, where the column is called otherwise."),
    DEFAULT(partitions, "[]", LIST, ANY_VALUE,
            "Outermost first: {RowLengths: key}, {RowSplits: key}, {RowStarts: key}, {RowLimits: "
            "key}, {ValueRowIds: key} or {UniformRowLength: n}."),
    DEFAULT(row_splits_dtype, "int32", TEXT, ONE_OF("int32|int64"), "The dtype of the splits."),
    DEFAULT(validate, "false", BOOL, ANY_VALUE, "Check the partitions."),
};

#define FEATURE(name_, namesake_, list_, help_)                                                    \
    {                                                                                              \
        .name = name_, .group = "Features", .namesake = namesake_, .help = help_,                  \
        .parameter_count = sizeof(list_) / sizeof(list_)[0], .parameters = list_                   \
    }

const struct stage_info feature_table[] = {
    FEATURE("FixedLen", "tf.io.FixedLenFeature", fixed_parameters, "Values of one shape."),
    FEATURE("FixedLenSequence", "tf.io.FixedLenSequenceFeature", sequence_parameters,
            "Sequences of values of one shape."),
    FEATURE("VarLen", "tf.io.VarLenFeature", var_parameters,
            "Any number of values, as a sparse column."),
    FEATURE("Ragged", "tf.io.RaggedFeature", ragged_parameters,
            "Any number of values, as a ragged column."),
};
const uint32_t feature_count = sizeof feature_table / sizeof feature_table[0];
