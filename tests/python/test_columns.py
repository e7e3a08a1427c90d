"""Strings, ragged and sparse columns take every form that they promise, and share memory as they say."""

import importlib.util
import unittest

import numpy as np
import rig  # noqa: F401

from tundish.columns import Ragged, Sparse, Strings


def strings(values, shape=None):
    offsets = np.cumsum([0] + [len(value) for value in values]).astype(np.int64)
    data = np.frombuffer(b"".join(values), np.uint8)
    return Strings(data, offsets, shape)


def address(array):
    return array.__array_interface__["data"][0]


def needs(name):
    return unittest.skipUnless(importlib.util.find_spec(name), f"{name} is not installed")


WORDS = [b"a", b"", b"tun\0dish", b"\xff\xfe", b"z\0"]


class StringsOfOneDimension(unittest.TestCase):
    def setUp(self):
        self.words = strings(WORDS)

    def test_they_have_a_length_and_give_bytes_by_number(self):
        self.assertEqual(len(self.words), 5)
        self.assertEqual([self.words[i] for i in range(-5, 5)], WORDS + WORDS)
        self.assertEqual(self.words[np.int64(2)], b"tun\0dish")
        self.assertEqual(list(self.words), WORDS)
        for beyond in (5, -6):
            with self.assertRaises(IndexError):
                self.words[beyond]

    def test_a_slice_shares_the_bytes(self):
        part = self.words[1:4]
        self.assertEqual(part.to_list(), WORDS[1:4])
        self.assertEqual(address(part.bytes), address(self.words.bytes))
        self.assertEqual(part[-1], b"\xff\xfe")
        self.assertEqual(part[1:].to_list(), WORDS[2:4])
        self.assertEqual(self.words[3:3].to_list(), [])
        self.assertEqual(self.words[:0].numpy("S").shape, (0,))

    def test_others_are_gathered(self):
        self.assertEqual(self.words[::-2].to_list(), WORDS[::-2])
        self.assertEqual(self.words[[2, 2, 0]].to_list(), [WORDS[2], WORDS[2], WORDS[0]])
        mask = np.array([True, False, False, True, True])
        self.assertEqual(self.words[mask].to_list(), [WORDS[0], WORDS[3], WORDS[4]])

    def test_a_copy_shares_nothing(self):
        copy = self.words[1:].copy()
        self.assertEqual(copy.to_list(), WORDS[1:])
        self.assertFalse(np.shares_memory(copy.bytes, self.words.bytes))
        self.assertFalse(np.shares_memory(copy.offsets, self.words.offsets))

    def test_objects_are_exact(self):
        array = self.words.numpy()
        self.assertEqual((array.dtype, array.tolist()), (np.dtype(object), WORDS))
        self.assertEqual(np.asarray(self.words).tolist(), WORDS)

    def test_a_fixed_width_is_that_of_the_longest(self):
        array = self.words.numpy("S")
        self.assertEqual(array.dtype, np.dtype("S8"))
        self.assertEqual(array.tolist(), np.array(WORDS, "S").tolist())
        self.assertEqual(self.words[1:3].numpy("S").tolist(), WORDS[1:3])
        self.assertEqual(self.words.numpy("S20").dtype, np.dtype("S20"))
        with self.assertRaisesRegex(ValueError, "8 bytes does not fit S3"):
            self.words.numpy("S3")

    @unittest.skipUnless(hasattr(np, "dtypes") and hasattr(np.dtypes, "StringDType"), "NumPy 2 has StringDType, this is older")
    def test_text_is_decoded_and_what_is_none_is_refused(self):
        text = strings(["Füße".encode(), b""]).numpy(np.dtypes.StringDType())
        self.assertEqual(text.tolist(), ["Füße", ""])
        with self.assertRaises(UnicodeDecodeError):
            self.words.numpy(np.dtypes.StringDType())

    @needs("pyarrow")
    def test_arrow_shares_bytes_and_offsets(self):
        import pyarrow as pa

        array = self.words.arrow()
        self.assertEqual((array.type, array.to_pylist()), (pa.large_binary(), WORDS))
        self.assertEqual([buffer.address for buffer in array.buffers()[1:]],
                         [address(self.words.offsets), address(self.words.bytes)])
        self.assertEqual(self.words[2:4].arrow().to_pylist(), WORDS[2:4])
        self.assertEqual(strings([b"ja", b""]).arrow(text=True).to_pylist(), ["ja", ""])
        with self.assertRaises(pa.ArrowInvalid):
            self.words.arrow(text=True)

    def test_a_framework_without_strings_says_what_to_do(self):
        for framework in (self.words.torch, self.words.jax):
            with self.assertRaisesRegex(TypeError, "string_lookup"):
                framework()


class StringsOfOtherShapes(unittest.TestCase):
    def test_rows_are_strings_again(self):
        table = strings([b"a", b"bb", b"ccc", b"d", b"", b"f"], (2, 3))
        self.assertEqual(len(table), 2)
        self.assertEqual(table[1].to_list(), [b"d", b"", b"f"])
        self.assertEqual(table[1, 0], b"d")
        self.assertEqual(table[:, 1].to_list(), [b"bb", b""])
        self.assertEqual([row.shape for row in table], [(3,), (3,)])
        self.assertEqual(table.to_list(), [[b"a", b"bb", b"ccc"], [b"d", b"", b"f"]])
        self.assertEqual(table.numpy("S").shape, (2, 3))

    @needs("pyarrow")
    def test_arrow_has_lists_of_fixed_size(self):
        table = strings([b"a", b"bb", b"ccc", b"d"], (2, 2))
        self.assertEqual(table.arrow().to_pylist(), [[b"a", b"bb"], [b"ccc", b"d"]])

    def test_one_string_has_no_length_but_a_value(self):
        one = strings([b"alone"], ())
        self.assertEqual((one.numpy().shape, one.numpy().item()), ((), b"alone"))
        self.assertEqual(one.to_list(), b"alone")
        with self.assertRaisesRegex(TypeError, "has no length"):
            len(one)


class RaggedColumns(unittest.TestCase):
    NESTED = [[[1, 2], []], [], [[3], [4, 5, 6], [7]]]

    def setUp(self):
        self.rows = Ragged(np.arange(1.0, 6.0, dtype=np.float32), (np.array([0, 2, 2, 5]),))
        splits = (np.array([0, 2, 2, 5]), np.array([0, 2, 2, 3, 6, 7]))
        self.deep = Ragged(np.arange(1, 8), splits)

    def test_rows_are_views(self):
        self.assertEqual([row.tolist() for row in self.rows], [[1, 2], [], [3, 4, 5]])
        self.assertEqual(self.rows[-1].tolist(), [3, 4, 5])
        self.assertTrue(np.shares_memory(self.rows[2], self.rows.values))
        with self.assertRaises(IndexError):
            self.rows[3]

    def test_deep_rows_are_ragged_again(self):
        self.assertEqual(self.deep.to_list(), self.NESTED)
        self.assertEqual([row.to_list() for row in self.deep], self.NESTED)
        self.assertEqual(self.deep[2][1].tolist(), [4, 5, 6])

    def test_slices_start_at_zero_again(self):
        for begin in range(4):
            for end in range(4):
                part = self.deep[begin:end]
                self.assertEqual(part.to_list(), self.NESTED[begin:end])
                self.assertEqual([int(splits[0]) for splits in part.row_splits], [0, 0])
        self.assertTrue(np.shares_memory(self.deep[1:].values, self.deep.values))
        with self.assertRaisesRegex(IndexError, "without a step"):
            self.deep[::2]

    def test_a_copy_shares_nothing(self):
        copy = self.deep.copy()
        self.assertEqual(copy.to_list(), self.NESTED)
        self.assertFalse(np.shares_memory(copy.values, self.deep.values))
        for mine, theirs in zip(copy.row_splits, self.deep.row_splits):
            self.assertFalse(np.shares_memory(mine, theirs))

    def test_padded_is_as_wide_as_the_longest_list_of_each_level(self):
        self.assertEqual(self.rows.padded().tolist(), [[1, 2, 0], [0, 0, 0], [3, 4, 5]])
        self.assertEqual(self.rows.padded().dtype, np.float32)
        self.assertEqual(self.deep.padded(-1).tolist(), [
            [[1, 2, -1], [-1, -1, -1], [-1, -1, -1]],
            [[-1, -1, -1]] * 3,
            [[3, -1, -1], [4, 5, 6], [7, -1, -1]],
        ])  # fmt: skip

    def test_inner_values_keep_their_shape(self):
        pairs = Ragged(np.arange(6).reshape(3, 2), (np.array([0, 1, 3]),))
        self.assertEqual(pairs.to_list(), [[[0, 1]], [[2, 3], [4, 5]]])
        self.assertEqual(pairs.padded(9).tolist(), [[[0, 1], [9, 9]], [[2, 3], [4, 5]]])

    def test_no_rows_and_no_values(self):
        none = Ragged(np.empty(0, np.int32), (np.array([0]),))
        self.assertEqual((len(none), none.to_list(), none.padded().shape), (0, [], (0, 0)))
        empty = Ragged(np.empty(0, np.int32), (np.array([0, 0, 0]),))
        self.assertEqual((empty.to_list(), empty.padded().shape), ([[], []], (2, 0)))

    def test_numpy_has_an_array_for_each_row(self):
        array = self.rows.numpy()
        self.assertEqual((array.shape, array[2].tolist()), ((3,), [3, 4, 5]))
        self.assertEqual([inner.tolist() for inner in self.deep.numpy()[2]], [[3], [4, 5, 6], [7]])

    def test_strings_may_be_ragged(self):
        words = Ragged(strings([b"a", b"bb", b"c"]), (np.array([0, 0, 2, 3]),))
        self.assertEqual(words.to_list(), [[], [b"a", b"bb"], [b"c"]])
        self.assertEqual(words[1].to_list(), [b"a", b"bb"])
        self.assertEqual(words.padded().tolist(), [[b"", b""], [b"a", b"bb"], [b"c", b""]])
        for framework in (words.torch, words.jax):
            with self.assertRaisesRegex(TypeError, "string_lookup"):
                framework()


class SparseColumns(unittest.TestCase):
    def setUp(self):
        self.sparse = Sparse(np.array([5, 7], np.int32), np.array([[0, 1], [2, 0]]), (3, 2))

    def test_all_forms_agree(self):
        whole = [[0, 5], [0, 0], [7, 0]]
        self.assertEqual(len(self.sparse), 3)
        self.assertEqual(self.sparse.dense().tolist(), whole)
        self.assertEqual(self.sparse.dense().dtype, np.int32)
        self.assertEqual(self.sparse.dense(-1).tolist(), [[-1, 5], [-1, -1], [7, -1]])
        self.assertEqual(self.sparse.to_list(), [((0, 1), 5), ((2, 0), 7)])

    def test_a_copy_shares_nothing(self):
        copy = self.sparse.copy()
        self.assertEqual(copy.to_list(), self.sparse.to_list())
        self.assertFalse(np.shares_memory(copy.values, self.sparse.values))
        self.assertFalse(np.shares_memory(copy.indices, self.sparse.indices))

    @needs("scipy")
    def test_scipy_shares_the_values(self):
        array = self.sparse.scipy()
        self.assertEqual(array.toarray().tolist(), self.sparse.dense().tolist())
        self.assertTrue(np.shares_memory(array.data, self.sparse.values))

    def test_strings_may_be_sparse(self):
        words = Sparse(strings([b"a", b"b"]), np.array([[0, 1], [1, 0]]), (2, 2))
        self.assertEqual(words.dense().tolist(), [[b"", b"a"], [b"b", b""]])
        self.assertEqual(words.to_list(), [((0, 1), b"a"), ((1, 0), b"b")])
        for framework in (words.torch, words.jax):
            with self.assertRaisesRegex(TypeError, "string_lookup"):
                framework()


if __name__ == "__main__":
    unittest.main()
