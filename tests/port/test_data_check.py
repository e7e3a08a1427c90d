"""Dataset.check: a dataset of tundish.data compared with a program, as a call."""

import unittest

import rig


class Checking(rig.PortTest):
    def dataset(self, factor=2):
        from tundish.data import Dataset

        return Dataset.range(7).map(lambda x: {"x": x, "y": x * factor}).batch(3)

    def program(self):
        import tensorflow as tf

        return tf.data.Dataset.range(7).map(lambda x: {"x": x, "y": x * 2}).batch(3)

    def test_what_is_the_same_is_told(self):
        same = "3 batches of 2 columns are the same, to the bit"
        self.assertEqual(self.dataset().check(self.program), same)
        self.assertEqual(self.dataset().check(self.program()), same)
        self.assertEqual(self.dataset().check(lambda: {"train": 1, "valid": self.program()}, stream="valid"), same)
        self.assertIn("2 batches", self.dataset().check(self.program, steps=2))

    def test_the_first_difference_is_raised(self):
        from tundish.data import DifferenceError

        with self.assertRaisesRegex(DifferenceError, r"step 0, column y: values\[1\]: TensorFlow has .*2.*, Tundish .*3"):
            self.dataset(3).check(self.program)
        with self.assertRaisesRegex(DifferenceError, "TensorFlow has 2 batches, Tundish 3"):
            self.dataset().check(lambda: self.program().take(2))

    def test_other_components_are_a_difference(self):
        from tundish.data import DifferenceError

        for change in (
            lambda row: row["y"],
            lambda row: (row["x"], row["y"]),
            lambda row: {"x": row["x"]},
            lambda row: {**row, "z": row["x"]},
            lambda row: {"x": row["x"], "y": {"z": row["y"]}},
        ):
            with self.assertRaisesRegex(DifferenceError, "TensorFlow's elements are .*, Tundish's "):
                self.dataset().check(lambda: self.program().map(change))

    def test_no_batches_are_not_told_as_the_same(self):
        said = self.dataset().skip(3).check(lambda: self.program().skip(3))
        self.assertEqual(said, "neither gives a batch, so nothing was compared")

    def test_a_program_of_a_file_is_found_by_its_name(self):
        from tundish.data import Dataset

        self.assertIn("to the bit", Dataset.range(4).batch(2).check(f"{rig.PROGRAMS}/failing.py:prints"))

    def test_what_is_no_dataset_is_told(self):
        from tundish import ArgumentError

        with self.assertRaisesRegex(ArgumentError, "the program gives int"):
            self.dataset().check(lambda: 7)
        with self.assertRaisesRegex(ArgumentError, "streams a: say stream="):
            self.dataset().check(lambda: {"a": self.program()})


if __name__ == "__main__":
    unittest.main()
