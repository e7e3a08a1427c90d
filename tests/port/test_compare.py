"""The comparison: what differs is found, with its row; what may differ is told."""

import re
import unittest

import rig


class Comparing(rig.PortTest):
    def parts(self, *arrays):
        import numpy as np

        names = ("values",) if len(arrays) == 1 else ("row_splits[0]", "values")
        return tuple(zip(names, map(np.asarray, arrays)))

    def difference(self, one, other, within=0):
        from tundish.port import compare

        return compare.difference("x", one, other, within)

    def test_equal_columns_have_no_difference(self):
        import numpy as np

        nan = np.float32("nan")
        self.assertIsNone(self.difference(self.parts([1.0, nan]), self.parts([1.0, nan])))

    def test_the_row_of_a_difference_is_told(self):
        told = self.difference(self.parts([[1, 2], [3, 4]]), self.parts([[1, 2], [3, 5]]))
        self.assertEqual(told.row, 1)
        self.assertIn("values[1, 1]", told.text)

    def test_the_sign_of_zero_is_a_difference(self):
        self.assertIsNotNone(self.difference(self.parts([0.0]), self.parts([-0.0])))

    def test_dtypes_shapes_and_kinds_are_compared(self):
        import numpy as np

        self.assertIn("dtype", self.difference(self.parts([1]), self.parts(np.int32([1]))).text)
        self.assertIn("shape", self.difference(self.parts([1]), self.parts([1, 2])).text)
        self.assertIn("ragged", self.difference(self.parts([1]), self.parts([0, 1], [1])).text)

    def test_a_tolerance_is_for_floats_alone(self):
        near = self.parts([1.0]), self.parts([1.0000001])
        self.assertIsNone(self.difference(*near, within=1e-6))
        self.assertIsNotNone(self.difference(*near))
        self.assertIsNotNone(self.difference(self.parts([1000000]), self.parts([1000001]), within=1e-3))

    def test_rows_are_counted_whatever_the_batches(self):
        from tundish.port import compare

        three = [[self.parts([1, 2, 3]), self.parts([4, 5, 6])]]
        parted = [[self.parts([3]), self.parts([6])], [self.parts([1, 2]), self.parts([4, 5])]]
        self.assertEqual(compare.rows(three), compare.rows(parted))
        moved = [[self.parts([1, 2, 3]), self.parts([5, 4, 6])]]
        self.assertNotEqual(compare.rows(three), compare.rows(moved))

    def test_a_wrong_pipeline_file_is_found_with_file_and_byte(self):
        ported = self.port("titanic_csv.py:make", compares=True)
        ported.compared = ported.compared.replace("skip: 1", "skip: 2")
        checked = self.check(ported)
        self.assertTrue(checked[0].failed)
        self.assertRegex(checked[0].lines[0], r"step 0, column \w+: .* row \d is of titanic.csv, byte \d+")

    def test_other_components_are_a_difference_even_if_the_columns_are_equal(self):
        ported = self.port("functions_of_nothing.py:matrix", compares=True)
        (stream,) = ported.streams
        self.assertIsInstance(stream.structure, str)
        columns = '{a: "[0.0, 0.0, 0.0]", b: "[0.0, 0.0, 0.0]"}'
        ported.compared = re.sub(r"- map: .*", f"- map: {columns}", ported.compared)
        stream.structure = ("a", "b")
        (checked,) = self.check(ported)
        self.assertTrue(checked.failed)
        self.assertEqual(
            checked.lines, ["TensorFlow's elements are one component, Tundish's 2 components: 0, 1"]
        )


if __name__ == "__main__":
    unittest.main()
