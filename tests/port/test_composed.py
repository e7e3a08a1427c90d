"""What is said with methods of tf.data.Dataset is what the function itself makes."""

import unittest
import unittest.mock

import rig


class Composed(rig.PortTest):
    def rows(self, dataset):
        import numpy as np
        import tensorflow as tf

        return [tf.nest.map_structure(lambda x: np.asarray(x).tolist(), each) for each in dataset]

    def test_a_csv_dataset_is_read_file_by_file_as_the_parallel_interleave_of_one_reads_it(self):
        import tensorflow as tf
        from tensorflow.python.data.ops import readers

        files = tf.data.Dataset.from_tensor_slices(["pets-1.csv", "pets-0.csv"])
        plain = readers.ParallelInterleaveDataset(
            files, tf.data.TextLineDataset, cycle_length=1, block_length=1, sloppy=False,
            buffer_output_elements=None, prefetch_input_elements=None,
        )  # fmt: skip
        self.assertEqual(self.rows(plain), self.rows(files.flat_map(tf.data.TextLineDataset)))

    def test_the_fused_stages_give_what_map_batch_shuffle_repeat_and_interleave_give(self):
        import random

        import tensorflow as tf
        from tensorflow.python.data.experimental.ops import batching, shuffle_ops
        from tensorflow.python.data.ops import readers

        from tundish.port import datasets

        draw, fused = random.Random(1), tf.data.experimental
        for _ in range(30):
            rows = tf.data.Dataset.range(draw.randint(1, 20))
            size, count, seed = draw.randint(1, 25), draw.randint(1, 4), draw.randint(1, 99)
            lengths = tf.data.Dataset.from_tensor_slices([draw.randint(0, 5) for _ in range(draw.randint(1, 8))])
            some = lambda length: tf.data.Dataset.range(tf.cast(length, tf.int64) * 10, tf.cast(length, tf.int64) * 11)
            with datasets.unseen():
                plain = (
                    shuffle_ops._ShuffleAndRepeatDataset(rows, size, count, seed),
                    batching._MapAndBatchDataset(rows, lambda x: x * 2, size, 2, drop_remainder=False),
                    readers.ParallelInterleaveDataset(lengths, some, count, 1, False, None, None),
                )
            said = (
                rows.apply(fused.shuffle_and_repeat(size, count, seed)),
                rows.apply(fused.map_and_batch(lambda x: x * 2, size)),
                lengths.apply(fused.parallel_interleave(some, count)),
            )
            for one, other in zip(plain, said, strict=True):
                self.assertEqual(self.rows(one), self.rows(other))

    def test_a_program_gets_what_keras_makes_of_a_series(self):
        import keras
        import numpy as np

        from tundish.port import datasets

        data = np.arange(40.0).reshape(20, 2)
        made = keras.utils.timeseries_dataset_from_array(data, data[:, 0], 3, sampling_rate=2, batch_size=4)
        names = [step.name for step in datasets.steps_of(made)]
        self.assertEqual(
            names, ["from_tensor_slices", "window", "batch", "flat_map", "from_tensor_slices", "zip", "batch"]
        )
        self.assertEqual(self.rows(made)[0][0][1], [[2, 3], [6, 7], [10, 11]])

    def test_windows_beyond_the_data_are_listed(self):
        import keras
        import numpy as np

        from tundish.port import composed, walk

        data = np.arange(20.0)
        made = keras.utils.timeseries_dataset_from_array(data, data, 3, start_index=15, shuffle=True, seed=1)
        steps = walk.Walk()
        self.assertIsNotNone(steps.stream(made))
        with unittest.mock.patch.object(composed, "_MOST_BYTES", 300):
            made = keras.utils.timeseries_dataset_from_array(np.zeros((20, 4)), None, 8, shuffle=True, seed=1)
        self.assertIsNone(steps.stream(made))
        self.assertIn("timeseries_dataset_from_array", steps.problems[0].name)


if __name__ == "__main__":
    unittest.main()
