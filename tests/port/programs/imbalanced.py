"""Imbalanced data: the two classes sampled evenly, and by a choice."""
import tensorflow as tf

NAMES = ["age", "type", "breed", "fee", "adopted"]


def rows():
    def parse(line):
        age, kind, _, fee, adopted = tf.io.decode_csv(line, [0, "", "", 0, 0])
        return {"age": age, "kind": kind, "fee": fee}, adopted

    return tf.data.TextLineDataset("pets-0.csv").skip(1).map(parse)


def sampled():
    positive = rows().filter(lambda features, label: label > 0).repeat()
    negative = rows().filter(lambda features, label: label == 0).repeat()
    return tf.data.Dataset.sample_from_datasets([positive, negative], weights=[0.5, 0.5], seed=1).batch(6)


def chosen():
    positive = rows().filter(lambda features, label: label > 0).repeat()
    negative = rows().filter(lambda features, label: label == 0).repeat()
    choice = tf.data.Dataset.range(2).repeat(9)
    return tf.data.Dataset.choose_from_datasets([negative, positive], choice).batch(4)


def resampled():
    return rows().rejection_resample(lambda features, label: label, [0.5, 0.5], seed=1).batch(4)
