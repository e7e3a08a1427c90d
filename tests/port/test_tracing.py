"""What a traced function leaves: it runs once, and nothing of it is lost without a word."""

import unittest
from pathlib import Path

import rig


class Tracing(rig.PortTest):
    def traced(self, function, dataset=None):
        import tensorflow as tf

        from tundish.port import datasets

        source = tf.data.Dataset.range(4) if dataset is None else dataset
        made = source.map(function)
        return datasets.step_of(made).arguments["map_func"], list(made.as_numpy_iterator())

    def test_the_function_runs_once_and_tensorflow_gets_its_result(self):
        runs = []

        def function(x):
            runs.append(x)
            return x * 2 + len(runs)

        traced, rows = self.traced(function)
        self.assertEqual((len(runs), rows), (1, [1, 3, 5, 7]))
        self.assertEqual(traced.result.call.name, "tf.math.add")

    def test_calls_have_the_lines_of_the_user(self):
        traced, _ = self.traced(lambda x: x - 1)
        file, line = traced.result.call.origin
        self.assertEqual(file, __file__)
        self.assertIn("self.traced(lambda x: x - 1)", Path(file).read_text().splitlines()[line - 1])

    def test_a_python_if_is_a_call_with_both_branches(self):
        import tensorflow as tf

        def function(x):
            if x > 1:
                x = x * 10
            else:
                x = tf.abs(x)
            return x

        traced, rows = self.traced(function)
        self.assertEqual(rows, [0, 1, 20, 30])
        call = traced.result.call
        self.assertEqual([call.name, call.args[1].call.name, call.args[2].call.name],
                         ["tf.cond", "tf.math.multiply", "tf.math.abs"])  # fmt: skip

    def test_what_no_public_function_made_is_a_problem(self):
        import tensorflow as tf
        from tensorflow.python.ops import math_ops, random_ops

        seen = tf.Variable(0, dtype=tf.int64)

        def function(x):
            seen.assign_add(1)
            drawn = math_ops.tanh(random_ops.random_uniform([]))
            return x + tf.cast(drawn, tf.int64) + tf.cast(math_ops.floor(1.5), tf.int64)

        traced, _ = self.traced(function)
        names = {each.name for each in traced.problems}
        self.assertIn("operation AssignAddVariableOp", names)
        self.assertTrue([name for name in names if name.endswith(", Tanh")], names)
        self.assertFalse([name for name in names if "Floor" in name])  # of a constant

    def test_isinstance_sees_a_tensor(self):
        import tensorflow as tf

        def function(x):
            assert isinstance(x, tf.Tensor) and not isinstance(x, tf.SparseTensor)
            return x

        self.assertEqual(self.traced(function)[1], [0, 1, 2, 3])

    def test_set_shape_changes_what_is_known(self):
        import tensorflow as tf

        def function(x):
            x = tf.io.decode_raw(tf.strings.as_string(x), tf.uint8)
            x.set_shape([1])
            return x

        traced, _ = self.traced(function)
        self.assertEqual(traced.result.call.specs[()].shape, [1])
        self.assertEqual(traced.result.call.name, "tundish.set_shape")  # which is no check

    def test_a_tf_function_is_a_part_of_the_function(self):
        import tensorflow as tf

        traced, rows = self.traced(tf.function(lambda x: x + 3))
        self.assertEqual((traced.result.call.name, rows), ("tf.math.add", [3, 4, 5, 6]))


if __name__ == "__main__":
    unittest.main()
