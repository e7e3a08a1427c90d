"""Functions of an InputContext: what they ask of it, and what they make of the answer."""
import logging

import tensorflow as tf


def _strategy():
    return tf.distribute.MirroredStrategy(["CPU:0"])


def _distributed(dataset_fn):
    return _strategy().distribute_datasets_from_function(dataset_fn)


def sharded():
    def dataset_fn(context):
        logging.info("pipeline %d of %d", context.input_pipeline_id, context.num_input_pipelines)
        assert context.num_input_pipelines >= 1 and isinstance(context.num_input_pipelines, int)
        dataset = tf.data.Dataset.range(24)
        if context and context.num_input_pipelines > 1:
            dataset = dataset.shard(context.num_input_pipelines, context.input_pipeline_id)
        return dataset.shuffle(8, seed=3).batch(context.get_per_replica_batch_size(4))

    return _distributed(dataset_fn)


def unless_one():
    def dataset_fn(context):
        dataset = tf.data.Dataset.range(24)
        if context.num_input_pipelines == 1:
            return dataset.batch(4)
        return dataset.shard(context.num_input_pipelines, context.input_pipeline_id).batch(4)

    return _distributed(dataset_fn)


def unseeded():
    tf.random.set_seed(5)

    def dataset_fn(context):
        dataset = tf.data.Dataset.range(24).shuffle(8)
        if context.num_input_pipelines > 1:
            dataset = dataset.shard(context.num_input_pipelines, context.input_pipeline_id)
        return dataset.shuffle(4).batch(4)

    return _distributed(dataset_fn)


def shuffled_if_one():
    def dataset_fn(context):
        dataset = tf.data.Dataset.range(24)
        if context.num_input_pipelines > 1:
            dataset = dataset.shard(context.num_input_pipelines, context.input_pipeline_id)
        else:
            dataset = dataset.shuffle(8, seed=3)
        return dataset.batch(4)

    return _distributed(dataset_fn)


def by_worker():
    def dataset_fn(context):
        dataset = tf.data.Dataset.range(24)
        if context.input_pipeline_id == 0:
            dataset = dataset.skip(4)
        return dataset.batch(4)

    return _distributed(dataset_fn)


def many_workers():
    def dataset_fn(context):
        dataset = tf.data.Dataset.range(24)
        if context.num_input_pipelines > 8:
            dataset = dataset.shuffle(100, seed=1)
        return dataset.shard(context.num_input_pipelines, context.input_pipeline_id).batch(4)

    return _distributed(dataset_fn)


def files_by_hand():
    files = sorted(tf.io.gfile.glob("imagenet-*"))

    def dataset_fn(context):
        mine = files[context.input_pipeline_id :: context.num_input_pipelines]
        return tf.data.TFRecordDataset(mine).batch(4)

    return _distributed(dataset_fn)


def pattern():
    def dataset_fn(context):
        name = f"imagenet-0000{context.input_pipeline_id}-of-00003"
        return tf.data.TFRecordDataset(tf.io.gfile.glob(name)).batch(4)

    return _distributed(dataset_fn)


def divided():
    def dataset_fn(context):
        return tf.data.Dataset.range(24).batch(int(8 / context.num_replicas_in_sync))

    return _distributed(dataset_fn)


def constant():
    def dataset_fn(context):
        number = tf.constant(context.input_pipeline_id, tf.int64)
        return tf.data.Dataset.range(24).map(lambda x: x + number).batch(4)

    return _distributed(dataset_fn)


def static_shape():
    def dataset_fn(context):
        dataset = tf.data.Dataset.range(24)
        dataset = dataset.batch(context.get_per_replica_batch_size(4), drop_remainder=True)
        return dataset.map(lambda x: x * x.shape[0])

    return _distributed(dataset_fn)


def consumed():
    settings = [8]

    def dataset_fn(context):
        return tf.data.Dataset.range(24).batch(settings.pop())

    return _distributed(dataset_fn)


def seeded():
    return _distributed(lambda context: tf.data.Dataset.range(24).shuffle(9, seed=context.input_pipeline_id).batch(2))


def in_a_list():
    def dataset_fn(context):
        return tf.data.Dataset.from_tensor_slices([context.input_pipeline_id, 5, 6]).batch(2)

    return _distributed(dataset_fn)


def last_worker():
    def dataset_fn(context):
        is_last = context.input_pipeline_id == context.num_input_pipelines - 1
        return tf.data.Dataset.range(24 if is_last else 20).batch(2)

    return _distributed(dataset_fn)
