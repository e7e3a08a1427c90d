"""Two columns are the same exactly when a trainer could not tell them apart."""

import unittest

from runner import column


def dense(dtype, *values, shape=None):
    return {"dtype": dtype, "shape": shape or [len(values)], "values": list(values)}


class Values(unittest.TestCase):
    def assert_same(self, recorded, delivered, tolerance=None):
        self.assertEqual(column.differences(recorded, delivered, tolerance), [])

    def assert_differs(self, recorded, delivered, *words, tolerance=None):
        text = "; ".join(column.differences(recorded, delivered, tolerance))
        self.assertTrue(text, "no difference was found")
        for word in words:
            self.assertIn(word, text)

    def test_different_decimals_of_one_float_are_equal(self):
        self.assert_same(dense("float32", 0.1), dense("float32", 0.10000000149011612))
        self.assert_same(dense("float16", 65504), dense("float16", 65504.0))
        self.assert_same(dense("bfloat16", 3.14), dense("bfloat16", 3.140625))

    def test_neighbouring_floats_differ(self):
        self.assert_differs(dense("float32", 0.1), dense("float32", 0.10000001), "[0]")
        self.assert_differs(dense("float64", 0.1), dense("float64", 0.10000000000000002))
        self.assert_differs(dense("bfloat16", 3.14), dense("bfloat16", 3.15625))

    def test_any_nan_equals_any_nan_and_nothing_else(self):
        self.assert_same(dense("float32", "nan"), dense("float32", "nan"))
        self.assert_differs(dense("float32", "nan"), dense("float32", 0.0))
        self.assert_differs(dense("float32", 0.0), dense("float32", "nan"), tolerance=1.0)

    def test_minus_zero_differs_from_zero(self):
        self.assert_differs(dense("float32", 0.0), dense("float32", -0.0))

    def test_infinities_keep_their_sign(self):
        self.assert_same(dense("float64", "-inf"), dense("float64", "-inf"))
        self.assert_differs(dense("float64", "-inf"), dense("float64", "inf"), tolerance=1.0)

    def test_tolerance_is_relative_and_below_one_absolute(self):
        self.assert_same(dense("float32", 1000.0), dense("float32", 1000.9), 1e-3)
        self.assert_differs(dense("float32", 1000.0), dense("float32", 1001.1), tolerance=1e-3)
        self.assert_same(dense("float32", 0.0), dense("float32", 9e-4), 1e-3)
        self.assert_differs(dense("float32", 0.0), dense("float32", 2e-3), tolerance=1e-3)

    def test_tolerance_is_for_floats_only(self):
        self.assert_differs(dense("int64", 1000), dense("int64", 1001), tolerance=1.0)

    def test_values_outside_the_dtype_are_refused(self):
        self.assert_differs(dense("uint8", 255), dense("uint8", 256), "256", "uint8")
        self.assert_differs(dense("int64", 1), dense("int64", 1.0), "int64")
        self.assert_differs(dense("bool", True), dense("bool", 1), "bool")
        self.assert_differs(dense("float32", 1.0), dense("float32", 1e39), "float32")
        self.assert_differs(dense("float32", 1.0), dense("float32", "1.0"), "float32")

    def test_text_and_base64_of_the_same_bytes_are_equal(self):
        self.assert_same(dense("string", "abc"), dense("string", {"base64": "YWJj"}))
        self.assert_differs(dense("string", "abc"), dense("string", "abd"), "'abd'", "'abc'")

    def test_a_difference_names_the_first_few_values(self):
        recorded, delivered = dense("int32", *range(10)), dense("int32", *range(1, 11))
        self.assert_differs(recorded, delivered, "10 of 10", "[0] is 1 instead of 0", "[3]")


class Structure(unittest.TestCase):
    RAGGED = {"dtype": "int64", "ragged": True, "row_splits": [[0, 2, 3]], "values": [1, 2, 3]}
    SPARSE = {
        "dtype": "int64",
        "sparse": True,
        "dense_shape": [1, 3],
        "indices": [[0, 2]],
        "values": [7],
    }

    def test_shapes_of_equal_size_differ(self):
        flat = dense("int64", 1, 2)
        column_vector = dense("int64", 1, 2, shape=[2, 1])
        self.assertEqual(
            column.differences(flat, column_vector), ["shape is [2, 1] instead of [2]"]
        )

    def test_empty_columns_keep_their_shape(self):
        empty = {"dtype": "int64", "shape": [0, 3], "values": []}
        other = {"dtype": "int64", "shape": [0, 4], "values": []}
        self.assertEqual(column.differences(empty, dict(empty)), [])
        self.assertTrue(column.differences(empty, other))

    def test_dtype_and_kind_are_compared_before_values(self):
        self.assertEqual(
            column.differences(dense("int64", 1), dense("int32", 2)),
            ["dtype is int32 instead of int64"],
        )
        self.assertEqual(
            column.differences(self.RAGGED, self.SPARSE), ["kind is sparse instead of ragged"]
        )

    def test_row_splits_and_inner_shape_are_compared(self):
        moved = dict(self.RAGGED, row_splits=[[0, 1, 3]])
        self.assertIn("row_splits", column.differences(self.RAGGED, moved)[0])
        self.assertEqual(column.differences(self.RAGGED, dict(self.RAGGED, inner_shape=[])), [])
        self.assertTrue(column.differences(self.RAGGED, dict(self.RAGGED, inner_shape=[1])))

    def test_indices_and_dense_shape_are_compared(self):
        self.assertTrue(column.differences(self.SPARSE, dict(self.SPARSE, indices=[[0, 1]])))
        self.assertTrue(column.differences(self.SPARSE, dict(self.SPARSE, dense_shape=[1, 4])))


if __name__ == "__main__":
    unittest.main()
