"""A program means in a pipeline file what it means in TensorFlow: axes, texts, names, parts used twice."""

import unittest

import rig

from tundish import tf
from tundish.data import Dataset

GRID = [[[1, -2, 3], [4, 5, -6]], [[0, 0, 9], [-7, 8, -7]]]
# What TensorFlow 2.21 gave for batches of two.
REDUCED = {
    "tf.reduce_max(x, axis=0)": [[4, 5, 3], [0, 8, 9]],
    "tf.reduce_max(x, 0)": [[4, 5, 3], [0, 8, 9]],
    "tf.reduce_max(x, axis=-1)": [[3, 5], [9, 8]],
    "tf.reduce_max(x, axis=1, keepdims=True)": [[[3], [5]], [[9], [8]]],
    "tf.reduce_max(x, axis=[0, 1])": [5, 9],
    "tf.reduce_max(x, (-1,))": [[3, 5], [9, 8]],
    "tf.reduce_max(x, axis=[0, 1], keepdims=True)": [[[5]], [[9]]],
    "tf.reduce_min(x, axis=0)": [[1, -2, -6], [-7, 0, -7]],
    "tf.reduce_min(x, 1)": [[-2, -6], [0, -7]],
    "tf.reduce_min(x, axis=-1, keepdims=True)": [[[-2], [-6]], [[0], [-7]]],
    "tf.math.reduce_min(x, axis=[0])": [[1, -2, -6], [-7, 0, -7]],
    "batches: tf.reduce_max(x, axis=1)": [[4, 5, 3], [0, 8, 9]],
    "batches: tf.reduce_min(x, axis=-2)": [[1, -2, -6], [-7, 0, -7]],
}


class Axes(unittest.TestCase):
    def test_the_axis_of_a_reduction_is_that_of_tensorflow(self):
        rig.needs(self, "numpy")
        rows = Dataset.from_tensor_slices(GRID)
        for form, expected in REDUCED.items():
            with self.subTest(form):
                text = form.removeprefix("batches: ")
                function = eval(f"lambda x: {text}", {"tf": tf})
                dataset = rows.map(function).batch(2) if text == form else rows.batch(2).map(function)
                (batch,) = dataset.peek(2)
                self.assertEqual(batch["value"].tolist(), expected)
                self.assertIn("axis=", dataset.yaml())

    def test_numbers_are_no_axes(self):
        rig.needs(self, "numpy")
        rows = Dataset.from_tensor_slices(GRID).map(lambda x: tf.maximum(x, [0, 1, 1])).batch(2)
        self.assertEqual(rows.peek(1)[0]["value"].tolist()[1], [[0, 1, 9], [0, 8, 1]])


if __name__ == "__main__":
    unittest.main()
