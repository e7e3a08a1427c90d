"""tf.Transform's names in a traced function, and sparse tensors that are put together."""

import tempfile
import unittest

import rig

from tundish import tf, tft
from tundish.data import Dataset, UnsupportedError


def batches(**columns):
    return Dataset.from_tensor_slices(columns).batch(2)


def stages(dataset):
    """The lines after the source and the batch, without the program's lines."""
    lines = dataset.yaml().splitlines()[5:]
    return [line.partition("  #")[0].removeprefix("      - ") for line in lines]


class Transform(unittest.TestCase):
    def test_a_sparse_tensor_of_the_parts_of_a_column_has_its_shape(self):
        def fill(row):
            x = tf.RaggedTensor.to_sparse(tf.strings.split(row["x"]))
            return {"x": tf.sparse.to_dense(tf.SparseTensor(x.indices, x.values, [x.dense_shape[0], 1]), "-")}

        self.assertEqual(
            stages(batches(x=["a", "b"]).map(fill)),
            ["string_split", "to_sparse", 'to_dense: {default_value: "-", shape: [null, 1]}'],
        )

    def test_a_sparse_tensor_of_other_parts_is_refused(self):
        def mix(row):
            x, y = (tf.RaggedTensor.to_sparse(tf.strings.split(row[name])) for name in "xy")
            return {"x": tf.sparse.to_dense(tf.SparseTensor(x.indices, y.values, [x.dense_shape[0], 1]))}

        with self.assertRaisesRegex(UnsupportedError, "not those of one column"):
            batches(x=["a"], y=["b"]).map(mix).yaml()

    def test_what_a_column_learns_twice_has_two_names(self):
        self.assertEqual(
            stages(batches(x=[1.0, 2.0]).map(
                lambda row: {"x": tft.scale_to_0_1(tft.scale_to_0_1(row["x"]) * 2.0)}
            )),
            ["scale_to_0_1", "map: {x: x * 2.0}", "scale_to_0_1: {statistics: x_2}"],
        )  # fmt: skip

    def test_a_stage_with_two_results_leaves_its_column(self):
        def weigh(row):
            ids = tft.compute_and_apply_vocabulary(tf.RaggedTensor.to_sparse(tf.strings.split(row["x"])))
            words, weights = tft.tfidf(ids, 5)
            return {"ids": ids, "words": words, "weights": weights}

        self.assertEqual(
            stages(batches(x=["a", "b"]).map(weigh))[2:],
            [
                "compute_and_apply_vocabulary",
                "map: {x_2: x}",
                "tfidf: {columns: x_2, vocab_size: 5, output: [words, weights]}",
                "rename: {x: ids}",
            ],
        )

    def test_a_vocabulary_is_applied_to_its_column(self):
        def apply(row):
            vocabulary = tft.vocabulary(row["x"], top_k=3, vocab_filename="v")
            return {"x": tft.apply_vocabulary(row["x"], vocabulary, num_oov_buckets=2)}

        (line,) = stages(batches(x=["a", "b"]).map(apply))
        self.assertEqual(line, "compute_and_apply_vocabulary: {num_oov_buckets: 2, top_k: 3, vocab_filename: v}")
        with self.assertRaisesRegex(UnsupportedError, "learned from another column"):
            batches(x=["a"], y=["b"]).map(
                lambda row: tft.apply_vocabulary(row["x"], tft.vocabulary(row["y"]))
            ).yaml()

    def test_tables_are_looked_up_as_tensorflows(self):
        pairs = tf.lookup.KeyValueTensorInitializer(["a", "b"], [7, 9], value_dtype=tf.int64)
        table = tf.lookup.StaticHashTable(pairs, -1)
        self.assertEqual(
            stages(batches(x=["a", "c"]).map(lambda row: {"x": table.lookup(row["x"])}))[-1].strip(),
            "x: \"where(x == 'a', cast(7, int64), where(x == 'b', cast(9, int64), cast(-1, int64)))\"",
        )
        numbers = tf.lookup.KeyValueTensorInitializer(["a", "b"], [0, 1], value_dtype=tf.int64)
        known = tf.lookup.StaticVocabularyTable(numbers, 3)
        self.assertEqual(
            stages(batches(x=["a", "c"]).map(lambda row: {"x": known[row["x"]]})),
            ["string_lookup: {num_oov_indices: 3, vocabulary: [a, b]}", 'map: {x: "where(x < 3, x + 2, x - 3)"}'],
        )

    def test_a_part_of_a_file_is_no_table(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("a\nb\nc\n")
            file.flush()
            index = tf.lookup.TextFileIndex
            lines = (file.name, tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER)
            whole = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(*lines), -1)
            part = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(*lines, vocab_size=2), -1)
            self.assertIn(
                file.name, batches(x=["a"]).map(lambda row: {"x": whole.lookup(row["x"])}).yaml()
            )
            with self.assertRaisesRegex(UnsupportedError, "only a part of a file"):
                batches(x=["a"]).map(lambda row: {"x": part.lookup(row["x"])}).yaml()


if __name__ == "__main__":
    unittest.main()
