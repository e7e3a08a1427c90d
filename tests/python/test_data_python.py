"""Functions, generators and data sets of a program with tundish.data, which the server's interpreters call."""

import functools
import os
import threading
import unittest
from unittest import mock

import rig

import tundish
from tundish.data import Dataset, TensorSpec

try:
    import numpy
except ImportError:
    numpy = None


def square(image, label):
    return {"image": image * image, "name": b"n%d" % label}


def counted(stop):
    for i in range(stop):
        yield {"i": i, "text": f"t{i}"}


class Photos:
    def __len__(self):
        return 50

    def __getitem__(self, index):
        return {"image": numpy.full([2, 2], index, "uint8"), "meta": {"label": index, "name": f"x{index}"}}


class Pairs:
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return numpy.full([2], index, "float32"), index


class Torn(Pairs):
    def __getitem__(self, index):
        if index % 2 == 0:
            raise OSError("torn")
        return super().__getitem__(index)


def has_cloudpickle():
    try:
        import cloudpickle
    except ImportError:
        return False
    return bool(cloudpickle)


@unittest.skipIf(numpy is None, "needs NumPy")
class OwnPython(unittest.TestCase):
    def setUp(self):
        environment = {"TUNDISH_BUILD": str(rig.BUILD), "PYTHONPATH": rig.PACKAGE}
        patched = mock.patch.dict(os.environ, environment)
        patched.start()
        self.addCleanup(patched.stop)
        self.rows = Dataset.from_tensor_slices({"a": [[0, 1], [2, 3], [4, 5]], "b": [4, 5, 6]}).map(
            lambda row: (row["a"], row["b"])
        )

    def test_a_function_has_the_elements_of_map_and_is_called_by_its_name(self):
        signature = {"image": TensorSpec([2], "int32"), "name": TensorSpec([], "string")}
        made = self.rows.map_python(square, signature).batch(2)
        self.assertIn('call: "test_data_python:square"', made.yaml())
        first, last = made.peek(9)
        self.assertEqual(list(first), ["image", "name"])
        self.assertEqual(first["image"].tolist(), [[0, 1], [4, 9]])
        self.assertEqual([bytes(text) for text in last["name"]], [b"n6"])

    def test_stages_before_and_after_it_are_the_servers(self):
        made = self.rows.shuffle(3, seed=1).batch(3).map_python("test_data_python:total", TensorSpec([None], "int64"))
        (batch,) = made.map(lambda total: total * 2).peek(9)
        self.assertEqual(sorted(batch["value"].tolist()), [2, 10, 18])

    @unittest.skipUnless(has_cloudpickle(), "needs cloudpickle")
    def test_a_function_without_a_name_goes_by_value_and_draws_from_the_rows_generator(self):
        offset = 7

        def draws(a, b, rng):
            return a + offset, (float(b), rng.integers(0, 1000, 3))

        signature = (TensorSpec([2], "int32"), (TensorSpec([]), TensorSpec([3], "int64")))
        made = self.rows.map_python(draws, signature, seed=3).batch(3)
        (batch,), (again,) = made.peek(9), made.peek(9)
        self.assertEqual(batch["value_0"].tolist(), [[7, 8], [9, 10], [11, 12]])
        self.assertEqual(len(set(map(tuple, batch["value_1_1"].tolist()))), 3)
        self.assertEqual(batch["value_1_1"].tolist(), again["value_1_1"].tolist())

    def test_a_generator_runs_again_in_each_epoch(self):
        spec = {"i": TensorSpec([], "int64"), "text": TensorSpec([], "string")}
        rows = Dataset.from_generator(counted, args=[5], output_signature=spec).batch(5)
        first, second = rows.peek(9, epochs=2)
        self.assertEqual(first["i"].tolist(), [0, 1, 2, 3, 4])
        self.assertEqual(second["i"].tolist(), first["i"].tolist())
        self.assertEqual(bytes(first["text"][4]), b"t4")

    def test_items_of_a_data_set_in_any_order(self):
        (batch,) = Dataset.from_indexable(Photos()).shuffle(-2, seed=1).batch(50).peek(9)
        self.assertEqual(sorted(batch["meta.label"].tolist()), list(range(50)))
        self.assertEqual(batch["image"][:, 1, 1].tolist(), batch["meta.label"].tolist())
        (batch,) = Dataset.from_indexable(Pairs(4)).map(lambda x, label: {"x": x, "y": label + 1}).batch(4).peek(9)
        self.assertEqual((batch["y"].tolist(), batch["x"].dtype), ([1, 2, 3, 4], numpy.float32))

    def test_columns_are_those_of_items_that_can_be_made(self):
        (batch,) = Dataset.from_indexable(Torn(4)).shard(2, 1).batch(2).peek(9)
        self.assertEqual(batch["value_1"].tolist(), [1, 3])
        with self.assertRaisesRegex(OSError, "torn"):
            Dataset.from_indexable(Torn(1))

    def test_a_data_set_is_opened_as_it_is(self):
        with tundish.open(Pairs(3)) as reader:
            self.assertEqual([int(item["value_1"]) for item in reader], [0, 1, 2])
        with self.assertRaisesRegex(tundish.ArgumentError, "not list"):
            tundish.open([1, 2])

    def test_an_opened_data_set_is_resumed_by_its_place(self):
        rows = Dataset.from_indexable(Pairs(40)).shuffle(-2, seed=1).batch(4)
        with tundish.open(rows) as reader:
            batches = iter(reader)
            for _ in range(7):
                next(batches)
            place = reader.place
            wanted = next(batches)["value_1"].tolist()
            del batches
        with tundish.open(rows, place=place) as reader:
            self.assertEqual(next(iter(reader))["value_1"].tolist(), wanted)

    @unittest.skipUnless(has_cloudpickle(), "needs cloudpickle")
    def test_a_function_is_named_with_its_line_where_a_row_is_refused(self):
        def half(image, label):
            return label / 2

        line = half.__code__.co_firstlineno
        for function in (half, functools.partial(half)):
            rows = self.rows.map_python(function, TensorSpec([], "int64")).batch(2)
            said = rf"half \({os.path.basename(__file__)}:{line}\): column 'value' wants int64\[\]"
            with self.assertRaisesRegex(tundish.DataError, said), tundish.open(rows) as reader:
                list(reader)

    def test_a_function_that_cannot_be_sent_is_named(self):
        lock = threading.Lock()

        def locked(image, label):
            with lock:
                return label

        with self.assertRaisesRegex(tundish.ArgumentError, "^map_python: .*locked cannot be sent .* inside of it"):
            self.rows.map_python(locked, TensorSpec([], "int64"))

    def test_what_is_wrong_is_told_at_once(self):
        with self.assertRaisesRegex(ValueError, "is not MODULE:FUNCTION"):
            self.rows.map_python("square", TensorSpec([]))
        with self.assertRaisesRegex(TypeError, "is no TensorSpec"):
            self.rows.map_python(square, TensorSpec())
        with self.assertRaisesRegex(TypeError, "takes a function, or its name"):
            self.rows.map_python(3, TensorSpec([]))
        with self.assertRaisesRegex(ValueError, "the data set has no items"):
            Dataset.from_indexable(Pairs(0))


def total(a, b):
    return a.sum(axis=1)


if __name__ == "__main__":
    unittest.main()
