"""The CSV tutorial: make_csv_dataset in its forms, lines, records, ranges of columns."""
import tensorflow as tf

TYPES = [int(), str(), str(), int(), int()]


def labeled():
    return tf.data.experimental.make_csv_dataset("pets-0.csv", batch_size=4, label_name="adopted", num_epochs=1, shuffle=False)


def selected():
    return tf.data.experimental.make_csv_dataset(
        "pets-0.csv", batch_size=5, select_columns=["age", "fee", "adopted"], label_name="adopted", num_epochs=1, shuffle=False
    )


def shuffled():
    return tf.data.experimental.make_csv_dataset(
        "pets-*.csv", batch_size=5, label_name="adopted", num_epochs=2, shuffle_seed=1, shuffle_buffer_size=20,
        num_rows_for_inference=4, ignore_errors=False,
    )


def endless():
    return tf.data.experimental.make_csv_dataset("pets-0.csv", batch_size=4, shuffle=False).take(7)


def lines():
    def parse(line):
        fields = tf.io.decode_csv(line, TYPES)
        return dict(zip(["age", "type", "breed", "fee", "adopted"], fields))

    return tf.data.TextLineDataset(["pets-0.csv", "pets-1.csv"]).skip(1).take(6).map(parse).batch(3)


def lines_of_each():
    files = tf.data.Dataset.list_files("pets-*.csv", shuffle=False)
    ds = files.interleave(lambda path: tf.data.TextLineDataset(path).skip(1), cycle_length=2)
    return ds.map(lambda line: tf.io.decode_csv(line, TYPES)).batch(4)


def survived():
    return tf.data.TextLineDataset("titanic.csv").skip(1).filter(lambda line: tf.not_equal(tf.strings.substr(line, 0, 1), "0")).batch(5)


def records():
    types = [tf.int32, tf.string, tf.string, tf.int32, tf.int32]
    return tf.data.experimental.CsvDataset(["pets-0.csv", "pets-1.csv"], types, header=True).batch(4)


def columns():
    return tf.data.experimental.CsvDataset("pets-0.csv", [tf.float32, tf.int32], header=True, select_cols=[0, 3]).batch(4)


def in_parallel():
    return tf.data.experimental.make_csv_dataset("pets-*.csv", batch_size=5, num_epochs=1, shuffle=False, num_parallel_reads=2)
