"""The distributed input guide: a global batch, dealt to replicas."""
import tensorflow as tf

global_batch_size = 8


def make_dataset():
    files = tf.data.Dataset.list_files("imagenet-*", seed=1)
    dataset = files.interleave(tf.data.TFRecordDataset, cycle_length=2, num_parallel_calls=2)
    features = {"image/class/label": tf.io.FixedLenFeature([], tf.int64)}
    dataset = dataset.map(lambda x: tf.io.parse_single_example(x, features))
    return dataset.shuffle(16, seed=3).batch(global_batch_size)


def distributed():
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    return strategy.experimental_distribute_dataset(make_dataset())


def from_function():
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])

    def dataset_fn(input_context):
        batch_size = input_context.get_per_replica_batch_size(global_batch_size)
        dataset = tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat(64).batch(16)
        dataset = dataset.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
        dataset = dataset.unbatch().batch(batch_size)
        return dataset.prefetch(2)

    return strategy.distribute_datasets_from_function(dataset_fn)
