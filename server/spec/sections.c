/* sections.c - the mappings that are not stages, described in the same words, so that the same code
 * checks and prints them. */
#include <stddef.h>

#include "spec/parameter_words.h"

#define SECTION(name_, title_, help_, ...)                                                         \
    static const struct parameter_info name_##_parameters[] = { __VA_ARGS__ };                     \
    const struct stage_info section_##name_ = { .name = title_,                                    \
                                                .group = "Pipeline file",                          \
                                                .help = help_,                                     \
                                                .parameter_count = sizeof name_##_parameters /     \
                                                                   sizeof name_##_parameters[0],   \
                                                .parameters = name_##_parameters };

SECTION(file, "pipeline file", "The contents of a pipeline file.",
        MAY(seed, INTEGER | NOTHING, ANY_VALUE,
            "Makes all random stages reproducible, as tf.random.set_seed does."),
        MAY(datasets, ENTRIES | NOTHING, ANY_VALUE,
            "Name to stages: datasets that streams and stages refer to by name."),
        NEEDED(streams, ENTRIES, ANY_VALUE, "Name to stream."),
        MAY(learn_from, TEXT | NOTHING, ANY_VALUE,
            "The stream that `tundish analyze` learns from; default: the only stream, else train."),
        MAY(remote, ENTRIES | NOTHING, ANY_VALUE, "How files at URLs are read."))

SECTION(stream, "stream", "One stream of batches.",
        NEEDED(dataset, DATASET, ANY_VALUE, "The stages; the first is a source."),
        MAY(distribute, ENTRIES | NOTHING, ANY_VALUE, "How batches are dealt to replicas."),
        MAY(deliver, ENTRIES | NOTHING, ANY_VALUE, "How batches are delivered."))

SECTION(
    distribute, "distribute", "How batches are dealt to replicas.",
    DEFAULT(replicas, "1", INTEGER, BETWEEN(1, 4096),
            "Replicas on each worker. Each column of a batch is divided among them along its "
            "first dimension; so are the rows of a program without a batch stage."),
    DEFAULT(auto_shard, "AUTO", TEXT, ONE_OF("AUTO|FILE|DATA|HINT|OFF"),
            "What is sharded among workers."),
    DEFAULT(rebatch, "split", TEXT, ONE_OF("split|carry|tensorflow"),
            "How a global batch is divided: split: each batch separately; carry: rows left "
            "over go to the next batch; tensorflow: as TensorFlow 2.21 chooses."),
    DEFAULT(from_function, "false", BOOL, ANY_VALUE,
            "As distribute_datasets_from_function: do not rebatch or shard."),
    DEFAULT(delivery, "lanes", TEXT, ONE_OF("lanes|queue|broadcast"),
            "lanes: one lane for each replica; queue: one queue for all; broadcast: one lane "
            "that all replicas read."),
    DEFAULT(files, "shared", TEXT, ONE_OF("shared|local"),
            "shared: every node sees every file. local: each node has its own files, reads "
            "them, and sends rows to the node that delivers them."),
    DEFAULT(groups, "1", INTEGER, BETWEEN(1, 4096),
            "The number of groups that share the session; the first batch waits for them."),
    DEFAULT(drop_remainder_step, "false", BOOL, ANY_VALUE,
            "Leave out steps in which some replica would have no row, instead of empty batches: "
            "with several nodes, an epoch ends at the first of them."),
    DEFAULT(even, "empty", TEXT, ONE_OF("empty|repeat"),
            "What fills a batch of fewer rows than the replicas divide evenly, as the last of an "
            "epoch may be. empty: nothing: replicas get fewer rows, or an empty batch, as in "
            "TensorFlow. repeat: rows from the epoch's beginning, as torch's DistributedSampler "
            "does, so that all replicas get equally many; `mask` says which rows these are."),
    MAY(mask, TEXT | NOTHING, ANY_VALUE,
        "With even: repeat, the name of the bool column that is added: true (1) for each row of "
        "the stream, false (0) for a repeated one, which metrics leave out; default: mask."),
    MAY(evaluation_shards, INTEGER | TEXT | NOTHING, BETWEEN(1, 1000000),
        "Divide the stream into this many shards; one reader reads a whole shard. auto: five "
        "times the number of readers at the start."))

SECTION(
    deliver, "deliver", "How batches are delivered.",
    DEFAULT(slots, "8", INTEGER, BETWEEN(3, 1024), "The number of batches that a lane can hold."),
    MAY(lane_bytes, SIZE | NOTHING, ANY_VALUE,
        "Memory for a lane's batches; default: computed from shapes and from the first batches as "
        "stored."),
    MAY(max_batch_bytes, SIZE | NOTHING, ANY_VALUE,
        "The largest size of a batch, and of a text that decode_compressed makes; more is an "
        "error."),
    MAY(memory_limit, SIZE | NOTHING, ANY_VALUE,
        "The largest memory for buffered rows, for all lanes, for decoded row groups of Parquet "
        "files, and for a batch's decompressed texts. The limits of the machine and of control "
        "groups always apply."),
    DEFAULT(memory, "shm", TEXT, ONE_OF("shm|memfd"), "The kind of shared memory."),
    DEFAULT(huge_pages, "false", BOOL, ANY_VALUE, "Ask for huge pages."),
    DEFAULT(compression, "auto", TEXT, ANY_VALUE,
            "auto, none, narrow, zstd or zstd:LEVEL. auto: no compression while there is enough "
            "memory. If lanes need more than an eighth of the memory they may use, compress each "
            "column whose measured cost is less than its saving; if they need more than they may "
            "use, compress what saves most for its time."),
    DEFAULT(checksums, "false", BOOL, ANY_VALUE, "Write a CRC32C for each column."),
    DEFAULT(on_error, "stop", TEXT, ANY_VALUE,
            "stop: end with an error; skip: drop bad rows; skip:LIMIT: drop at most LIMIT in all "
            "epochs of a server. A damaged file (cut, say) ends after its last good row, and "
            "counts as one. Only delivered rows are checked: rows that skip, shard, take or "
            "drop_remainder drop are never computed. In a batch, a row whose shape differs from "
            "the first row's is bad."),
    DEFAULT(slow_group, "block", TEXT, ONE_OF("block|detach"),
            "block: wait for the slowest group; detach: detach it."),
    MAY(group_wait, DURATION | NOTHING, ANY_VALUE,
        "How long the first batch waits for the groups, and how long, after a restart of the "
        "server, the groups that are back wait for the others; default: no limit."),
    DEFAULT(rejoin, "30s", DURATION, ANY_VALUE,
            "How long the server waits for a replacement of a dead replica."),
    MAY(epochs, INTEGER | NOTHING, AT_LEAST(1),
        "The number of epochs after which the stream ends."),
    MAY(widen, ENTRIES | NOTHING, ANY_VALUE,
        "Column to {dtype, scale, offset, layout}: the consumer computes x * scale + offset."))

SECTION(
    remote, "remote", "How files at URLs (s3://, gs://, http://, https://) are read.",
    MAY(endpoint, TEXT | NOTHING, ANY_VALUE,
        "The address of the store, as http://localhost:9000; default: AWS_ENDPOINT_URL_S3, "
        "AWS_ENDPOINT_URL, else Amazon's for s3:// and Google's for gs://."),
    MAY(region, TEXT | NOTHING, ANY_VALUE,
        "The store's region; default: AWS_REGION, AWS_DEFAULT_REGION, the profile's, else "
        "us-east-1."),
    DEFAULT(credentials, "auto", TEXT, ANY_VALUE,
            "environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, for gs:// "
            "GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY or GOOGLE_OAUTH_ACCESS_TOKEN; auto: "
            "these, else the profile AWS_PROFILE, else those of the container or the machine, "
            "else none; none: requests are not signed; or a file with a profile or a token."),
    DEFAULT(part, "8MiB", SIZE, ANY_VALUE, "The size of a request, from 64KiB to 1GiB."),
    DEFAULT(connections, "32", INTEGER, BETWEEN(1, 1024),
            "The number of requests that the server makes at the same time."),
    DEFAULT(retries, "8", INTEGER, BETWEEN(0, 100),
            "How often a request that failed is made again, if that can help."),
    MAY(cache, TEXT | NOTHING, ANY_VALUE,
        "A folder of this machine where parts stay when the server ends, for all servers of the "
        "user, to whom it belongs and who alone may write to it; default: they stay as long as "
        "the server runs."),
    DEFAULT(cache_bytes, "4GiB", SIZE, ANY_VALUE,
            "How much of what was fetched is kept, in the folder `cache` or in a file without a "
            "name in the cache folder, so that rows that are read again do not come again. "
            "Without `cache` at least two parts for each connection."),
    DEFAULT(fetch, "each", TEXT, ONE_OF("each|once"),
            "each: every node fetches what it reads. once: one node fetches a file, and sends its "
            "rows to the nodes that deliver them; FILE sharding reads each file on one node "
            "anyway."))

SECTION(widen, "widen", "The conversion of a column by the consumer.",
        NEEDED(dtype, TEXT, ONE_OF("float32|float16|bfloat16|float64"), "The dtype of the result."),
        DEFAULT(scale, "1", NUMBER | NUMBERS, ANY_VALUE,
                "The factor; a list has one for each index of the last axis."),
        DEFAULT(offset, "0", NUMBER | NUMBERS, ANY_VALUE,
                "The summand; a list has one for each index of the last axis."),
        DEFAULT(layout, "NHWC", TEXT, ONE_OF("NHWC|NCHW"),
                "NHWC: values in the column's order. NCHW: of images (batch, height, width, "
                "channels), the channels before height and width."))

SECTION(tensor, "column", "A column's values.",
        MAY(values, ANYTHING | VARYING, ANY_VALUE, "Nested lists."),
        MAY(npy, TEXT, ANY_VALUE, "A file written by numpy.save."),
        MAY(dtype, DTYPE, ANY_VALUE,
            "Their dtype; default: int32 (int64 if too large), float32, bool or string."))

SECTION(program_spec, "spec", "A column that a program writes.",
        NEEDED(dtype, DTYPE, ANY_VALUE, "Its dtype."),
        DEFAULT(shape, "[]", SHAPE, ANY_VALUE, "Its shape."))

SECTION(field, "record_defaults", "A field's default and dtype.",
        NEEDED(values, ANYTHING, ANY_VALUE, "The default; [] for none: the field is required."),
        NEEDED(dtype, TEXT, ONE_OF("float32|float64|int32|int64|string"), "Its dtype."))

#define FEATURE_TYPE NEEDED(type, TEXT, ANY_VALUE, "The type of the feature.")
#define FEATURE_DTYPE                                                                              \
    NEEDED(dtype, TEXT, ONE_OF("int64|float32|string"), "The dtype of its values.")
#define FEATURE_KEY MAY(key, TEXT, ANY_VALUE, "Its name in the record; default: the column's name.")
#define FEATURE_SHAPE NEEDED(shape, SHAPE, ANY_VALUE, "The shape in each record.")

static const struct parameter_info fixed_parameters[] = {
    FEATURE_TYPE,
    FEATURE_DTYPE,
    FEATURE_SHAPE,
    /* A value without a default is required, as in tf.io.FixedLenFeature. */
    MAY(default_value, ANYTHING, ANY_VALUE,
        "The value for a record without this feature; default: an error."),
    FEATURE_KEY,
};
static const struct parameter_info sequence_parameters[] = {
    FEATURE_TYPE,
    FEATURE_DTYPE,
    FEATURE_SHAPE,
    DEFAULT(allow_missing, "false", BOOL, ANY_VALUE, "Must be true."),
    MAY(default_value, ANYTHING, ANY_VALUE, "The padding of short sequences."),
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
        "The values' name in the record; default: the column's name."),
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
