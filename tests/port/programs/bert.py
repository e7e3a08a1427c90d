"""The official BERT pretraining input: fixed features, int32 for accelerators."""
import tensorflow as tf


def decode_record(record, features):
    example = tf.io.parse_single_example(record, features)
    for name in list(example.keys()):
        t = example[name]
        if t.dtype == tf.int64:
            t = tf.cast(t, tf.int32)
        example[name] = t
    return example


def make(seq_length=8, predictions=2, batch_size=4, is_training=True, input_pipeline_context=None):
    features = {
        "input_ids": tf.io.FixedLenFeature([seq_length], tf.int64),
        "input_mask": tf.io.FixedLenFeature([seq_length], tf.int64),
        "segment_ids": tf.io.FixedLenFeature([seq_length], tf.int64),
        "masked_lm_positions": tf.io.FixedLenFeature([predictions], tf.int64),
        "masked_lm_weights": tf.io.FixedLenFeature([predictions], tf.float32),
        "next_sentence_labels": tf.io.FixedLenFeature([1], tf.int64),
    }
    dataset = tf.data.Dataset.list_files(["pretrain-*.tfrecord"], shuffle=is_training, seed=3)
    if input_pipeline_context and input_pipeline_context.num_input_pipelines > 1:
        dataset = dataset.shard(
            input_pipeline_context.num_input_pipelines, input_pipeline_context.input_pipeline_id
        )
    if is_training:
        dataset = dataset.repeat().shuffle(2, seed=4)
    dataset = dataset.interleave(tf.data.TFRecordDataset, cycle_length=2)
    if is_training:
        dataset = dataset.shuffle(10, seed=5)
    dataset = dataset.map(lambda record: decode_record(record, features), num_parallel_calls=2)

    def select(record):
        x = {
            "input_word_ids": record["input_ids"],
            "input_mask": record["input_mask"],
            "input_type_ids": record["segment_ids"],
        }
        for key in ("masked_lm_positions", "masked_lm_weights"):
            x[key] = record[key]
        return x, record["next_sentence_labels"]

    return dataset.map(select).batch(batch_size, drop_remainder=is_training).prefetch(tf.data.AUTOTUNE)


def distributed():
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    return strategy.distribute_datasets_from_function(
        lambda ctx: make(batch_size=ctx.get_per_replica_batch_size(4), input_pipeline_context=ctx)
    )
