"""Rows for a `program` stage, as bytes."""

import io
import struct
import unittest
from unittest import mock

import rig  # noqa: F401 - makes the package importable

import tundish_rows
from tundish.rows import RowWriter


class Rows(unittest.TestCase):
    def written(self, spec, **row):
        output = io.BytesIO()
        with RowWriter(spec, output) as rows:
            rows.write(**row)
        return output.getvalue()

    def test_values_follow_each_other_after_the_sizes_that_vary(self):
        spec = {"n": "int64", "name": ("string", []), "x": {"dtype": "float32", "shape": [None, 2]}}
        expected = struct.pack("<qQ3sQ4f", -7, 3, b"abc", 2, 1, 2, 3, 4)
        self.assertEqual(self.written(spec, x=[[1, 2], [3, 4]], n=-7, name="abc"), expected)

    def test_a_row_that_does_not_fit_leaves_nothing(self):
        output = io.BytesIO()
        with RowWriter({"a": "int64", "b": ("int64", [2])}, output) as rows:
            for wrong in ({"a": 1}, {"a": 1, "b": [1, 2, 3]}, {"a": 1, "c": [1, 2]}):
                with self.assertRaises(ValueError):
                    rows.write(**wrong)
            rows.write(a=1, b=[2, 3])
        self.assertEqual(output.getvalue(), struct.pack("<3q", 1, 2, 3))

    def test_a_rejected_row_is_told_in_its_place(self):
        output = io.BytesIO()
        with mock.patch.dict("os.environ", {"TUNDISH_REJECT": "word"}):
            with RowWriter({"a": "int64"}, output) as rows:
                rows.write(a=1)
                rows.reject(ValueError("torn"))
                rows.write(a=2)
                rows.reject("é" * 5000)
        begin = struct.pack("<q", 1) + b"word" + struct.pack("<Q", 4) + b"torn" + struct.pack("<q", 2)
        long = b"word" + struct.pack("<Q", 4096) + "é".encode() * 2048
        self.assertEqual(output.getvalue(), begin + long)

    def test_a_row_is_not_rejected_where_nobody_can_be_told(self):
        output = io.BytesIO()
        with mock.patch.dict("os.environ", clear=True):
            with RowWriter({"a": "int64"}, output) as rows:
                with self.assertRaisesRegex(ValueError, "torn"):
                    rows.reject("torn")
        self.assertEqual(output.getvalue(), b"")

    def test_arrays_go_out_as_they_lie(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed")
        image = numpy.arange(12, dtype=numpy.uint8).reshape(2, 2, 3)
        spec = {"image": ("uint8", [None, None, 3])}
        self.assertEqual(self.written(spec, image=image), struct.pack("<QQ", 2, 2) + image.tobytes())
        self.assertEqual(self.written(spec, image=image.tolist()), self.written(spec, image=image))

    def test_the_old_name_is_the_same_module(self):
        self.assertIs(tundish_rows.RowWriter, RowWriter)


if __name__ == "__main__":
    unittest.main()
