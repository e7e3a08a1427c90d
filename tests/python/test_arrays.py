"""Arrays: views of every dtype, and what other libraries take without numpy."""

import gc
import struct
import unittest

import rig

import tundish

TYPES = {
    "bool": [True, False],
    "uint8": [0, 255],
    "int8": [-128, 127],
    "uint16": [0, 65535],
    "int16": [-32768, 32767],
    "uint32": [0, 2**32 - 1],
    "int32": [-(2**31), 2**31 - 1],
    "uint64": [0, 2**53],
    "int64": [-(2**53), 2**53],
    "float16": [-1.5, 2.0],
    "bfloat16": [-1.5, 2.0],
    "float32": [-1.5, 2.0],
    "float64": [-1.5, 2.0],
}
def one_batch(text):
    with rig.serve(text) as server, server.open("train") as reader:
        return reader.next()


class Capsules(unittest.TestCase):
    def setUp(self):
        self.batch = one_batch(rig.pipeline("range: {stop: 6}", "batch: 6"))
        self.array = self.batch.array("value")

    def test_the_buffer_is_read_only_and_has_a_shape(self):
        view = memoryview(self.array)
        self.assertEqual((view.readonly, view.format, view.shape), (True, "q", (6,)))
        self.assertEqual(view.tolist(), list(range(6)))
        with self.assertRaises((BufferError, TypeError)):
            struct.pack_into("q", self.array, 0, 1)

    def test_the_versioned_capsule_is_flagged_read_only(self):
        numpy = rig.needs(self, "numpy")
        self.assertIn("dltensor_versioned", repr(self.array.__dlpack__(max_version=(1, 3))))
        view = numpy.from_dlpack(self.array)
        self.assertEqual(view.tolist(), list(range(6)))
        self.assertFalse(view.flags.writeable)

    def test_a_consumer_without_versions_gets_the_legacy_capsule(self):
        self.assertRegex(repr(self.array.__dlpack__()), r'"dltensor"')
        self.assertRegex(repr(self.array.__dlpack__(max_version=(0, 8))), r'"dltensor"')

    def test_a_capsule_that_nobody_takes_gives_its_lease_back(self):
        with rig.serve(rig.pipeline("range: {stop: 6}", "batch: 6")) as server:
            with server.open("train") as reader:
                capsule = reader.next().array("value").__dlpack__(max_version=(1, 0))
                gc.collect()
                self.assertEqual(reader.info.held_count, 1)
                del capsule
                self.assertEqual(reader.info.held_count, 0)

    def test_a_copy_is_a_copy(self):
        numpy = rig.needs(self, "numpy")
        if int(numpy.__version__.split(".")[0]) < 2:
            self.skipTest("NumPy before 2 does not ask for copies")
        copy = numpy.from_dlpack(self.array, copy=True)
        copy[:] = 7
        self.assertEqual(memoryview(self.array).tolist(), list(range(6)))

    def test_another_device_or_stream_is_refused(self):
        for request in ({"dl_device": (2, 0)}, {"stream": 1}):
            with self.assertRaises(BufferError):
                self.array.__dlpack__(**request)
        self.assertEqual(self.array.__dlpack_device__(), (1, 0))

    def test_torch_takes_it_without_a_copy(self):
        torch = rig.needs(self, "torch")
        tensor = torch.from_dlpack(self.array)
        self.assertEqual(tensor.tolist(), list(range(6)))
        self.assertEqual(tensor.data_ptr(), self.batch["value"].ctypes.data)

    def test_asarray_is_a_view_and_converts_when_asked(self):
        numpy = rig.needs(self, "numpy")
        view = numpy.asarray(self.array)
        self.assertEqual(view.ctypes.data, self.batch["value"].ctypes.data)
        self.assertFalse(view.flags.writeable)
        self.assertEqual(numpy.asarray(self.array, dtype="float32").dtype, "float32")


class Types(unittest.TestCase):
    def test_every_dtype_is_numpys_of_that_name(self):
        numpy = rig.needs(self, "numpy")
        rig.needs(self, "ml_dtypes")
        columns = ", ".join(
            f"c_{name}: {{values: {str(values).lower()}, dtype: {name}}}"
            for name, values in TYPES.items()
        )
        batch = one_batch(rig.pipeline(f"from_tensor_slices: {{{columns}}}", "batch: 2"))
        for name, values in TYPES.items():
            with self.subTest(dtype=name):
                column = batch[f"c_{name}"]
                self.assertEqual(str(column.dtype), name)
                self.assertEqual(column.astype("float64").tolist(), [float(v) for v in values])
                self.assertFalse(column.flags.writeable)
                self.assertEqual(batch.array(f"c_{name}").dtype, name)
                self.assertEqual(column.ctypes.data % 64, 0)
                if name != "bfloat16":  # numpy itself cannot take that
                    self.assertEqual(numpy.from_dlpack(batch.array(f"c_{name}")).dtype, column.dtype)

    def test_torch_takes_bfloat16(self):
        torch = rig.needs(self, "torch")
        text = "from_tensor_slices: {x: {values: [-1.5, 2.0], dtype: bfloat16}}"
        tensor = torch.from_dlpack(one_batch(rig.pipeline(text, "batch: 2")).array("x"))
        self.assertEqual((tensor.dtype, tensor.tolist()), (torch.bfloat16, [-1.5, 2.0]))


class Parts(unittest.TestCase):
    """The memory of columns that are more than an array."""

    def parts(self, stages, name="x"):
        def plain(part):
            if isinstance(part, tundish.Array):
                return memoryview(part).tolist()
            return [plain(item) for item in part] if isinstance(part, list) else part

        return [plain(part) for part in one_batch(rig.pipeline(*stages)).parts(name)]

    def test_of_strings_are_bytes_offsets_and_the_shape(self):
        stages = ["from_tensor_slices: {x: [[ab, c], ['', def]]}", "batch: 2"]
        self.assertEqual(self.parts(stages), [list(b"abcdef"), [0, 2, 3, 3, 6], (2, 2)])

    def test_of_a_ragged_column_are_values_and_splits(self):
        numbers = "from_tensor_slices: {x: [[5, 6, 0], [0, 0, 0], [7, 0, 0]]}"
        stages = [numbers, "batch: 3", "to_ragged: {padding: 0}"]
        self.assertEqual(self.parts(stages), [[5, 6, 7], [[0, 2, 2, 3]]])
        stages = ["from_tensor_slices: {x: [[ab, ''], [c, d]]}", "batch: 2", "to_ragged: {padding: ''}"]
        self.assertEqual(self.parts(stages), [list(b"abcd"), [0, 2, 3, 4], (3,), [[0, 1, 3]]])

    def test_of_a_sparse_column_are_values_indices_and_the_shape(self):
        stages = ["from_tensor_slices: {x: [[5, 0, 6], [0, 7, 0]]}", "batch: 2", "to_sparse"]
        self.assertEqual(self.parts(stages), [[5, 6, 7], [[0, 0], [0, 2], [1, 1]], (2, 3)])


class Widening(unittest.TestCase):
    STAGES = ("from_tensor_slices: {x: {values: [[0, 2], [4, 255]], dtype: uint8}}", "batch: 2")
    DELIVER = "{epochs: 1, widen: {x: {dtype: float32, scale: 0.5, offset: 1}}}"
    WIDE = [[1.0, 2.0], [3.0, 128.5]]

    def test_gives_writable_memory_of_its_own(self):
        batch = one_batch(rig.pipeline(*self.STAGES, deliver=self.DELIVER))
        wide = batch.widen("x")
        self.assertEqual((wide.tolist(), wide.dtype), (self.WIDE, "float32"))
        self.assertEqual(wide.ctypes.data % 64, 0)
        wide[:] = 0
        self.assertEqual(batch["x"].tolist(), [[0, 2], [4, 255]])
        self.assertEqual(batch.widen("x").tolist(), self.WIDE)

    def test_open_can_ask_for_it(self):
        with rig.serve(rig.pipeline(*self.STAGES, deliver=self.DELIVER)) as server:
            with server.open("train", widen=True) as reader:
                batch = reader.next()
                self.assertEqual(batch["x"].tolist(), self.WIDE)
                self.assertIs(batch["x"], batch["x"])
                self.assertEqual(reader.spec["x"].widen_dtype, "float32")
                self.assertEqual(reader.spec["x"].widen_scale, (0.5,))
                self.assertEqual(reader.spec["x"].widen_offset, (1.0,))

    def test_can_put_channels_before_height_and_width(self):
        stages = ["range: {stop: 4}", 'map: {x: "cast([value, value + 1, value + 2, value + 3], uint8)"}',
                  "reshape: {columns: x, shape: [2, 1, 2]}", "batch: 4"]  # fmt: skip
        batch = one_batch(rig.pipeline(*stages, deliver="{widen: {x: {dtype: float32, layout: NCHW}}}"))
        self.assertEqual(batch.reader.spec["x"].widen_layout, "NCHW")
        self.assertEqual(batch.widen("x").shape, (4, 2, 2, 1))
        self.assertEqual(batch.widen("x").tolist(), batch["x"].transpose(0, 3, 1, 2).tolist())

    def test_of_a_column_that_is_not_named_is_refused(self):
        batch = one_batch(rig.pipeline(*self.STAGES))
        with self.assertRaisesRegex(tundish.ArgumentError, "deliver.widen"):
            batch.widen("x")
        with self.assertRaises(tundish.ColumnError):
            batch.widen("y")


class Missing(unittest.TestCase):
    def test_a_column_names_the_nearest(self):
        batch = one_batch(rig.pipeline("range: {stop: 6}", "batch: 6"))
        for look in (lambda: batch["valeu"], lambda: batch.array("valeu"), lambda: batch.parts("valeu")):
            with self.assertRaises(tundish.ColumnError) as caught:
                look()
            self.assertIsInstance(caught.exception, KeyError)
            self.assertIn("did you mean 'value'?", str(caught.exception))
        with self.assertRaisesRegex(AttributeError, "did you mean 'value'"):
            batch.valeu
        self.assertIsNone(batch.get("valeu"))
        self.assertNotIn("valeu", batch)
        self.assertEqual(batch.value.tolist(), list(range(6)))


if __name__ == "__main__":
    unittest.main()
