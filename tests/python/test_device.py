"""Batches on a GPU: what its memory holds, which streams wait, how long memory lives, and what fails."""

import ctypes
import gc
import inspect
import os
import threading
import unittest
import warnings

import gpu
import kinds
import rig

import tundish

if gpu.IS_REAL or os.path.exists(gpu.STAND_IN):
    GPU = gpu.Gpu()
else:
    raise unittest.SkipTest("needs tests/cuda/libcuda.so.1 in the build folder")

ROWS = ("range: {stop: 400}", "batch: 10")  # 40 steps
NUMBERS = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16",
           "bfloat16", "float32", "float64")  # fmt: skip
# As DLPack numbers kinds of values.
CODES = {"i": 0, "u": 1, "f": 2, "V": 4, "b": 6}


def open_both(server, **options):
    host = server.open("train", group="host", widen=True)
    return host, server.open("train", group="device", device="cuda", **options)


def content(array, stream):
    """The bytes of a device's array, as a consumer on this stream sees them."""
    taken = gpu.take(array, stream)
    try:
        return GPU.read(taken.address, taken.size, stream)
    finally:
        taken.delete()


def rows(step):
    """The bytes of a batch of ROWS."""
    return b"".join(value.to_bytes(8, "little") for value in range(10 * step, 10 * step + 10))


class Case(unittest.TestCase):
    def setUp(self):
        self.stream = GPU.stream()

    def serve(self, text, **options):
        server = self.enterContext(rig.serve(text))
        return server, self.enterContext(server.open("train", device="cuda:0", **options))

    def assert_rows(self, batch):
        self.assertEqual(content(batch["value"], self.stream), rows(batch.step))


class Equal(Case):
    """All that is delivered to a device is what the host gets."""

    def assert_array(self, device, host, what):
        import numpy

        host = numpy.ascontiguousarray(host)
        taken = gpu.take(device, self.stream)
        found = GPU.read(taken.address, taken.size, self.stream)
        taken.delete()
        self.assertEqual(taken.device, (2, 0), what)
        self.assertEqual((taken.shape, device.shape), (host.shape, host.shape), what)
        self.assertEqual((device.dtype, device.nbytes), (str(host.dtype), host.nbytes), what)
        code = 4 if device.dtype == "bfloat16" else CODES[host.dtype.kind]
        self.assertEqual(taken.type, (code, 8 * host.itemsize, 1), what)
        self.assertEqual(found, host.tobytes(), what)

    def assert_column(self, device, host, what):
        if isinstance(host, tundish.Strings):
            self.assertEqual(device.shape, host.shape, what)
            self.assert_array(device.bytes, host.bytes, what)
            self.assert_array(device.offsets, host.offsets, what)
        elif isinstance(host, tundish.Ragged):
            self.assertEqual(len(device), len(host), what)
            self.assert_column(device.values, host.values, what)
            for mine, other in zip(device.row_splits, host.row_splits, strict=True):
                self.assert_array(mine, other, what)
        elif isinstance(host, tundish.Sparse):
            self.assertEqual(device.shape, host.shape, what)
            self.assert_column(device.values, host.values, what)
            self.assert_array(device.indices, host.indices, what)
        else:
            self.assert_array(device, host, what)

    def assert_stream(self, text):
        batches = 0
        with rig.serve(text) as server:
            host, device = open_both(server)
            with host, device:
                while not host.ended:
                    for mine, other in zip(device, host, strict=True):
                        self.assertEqual((mine.epoch, mine.step), (other.epoch, other.step))
                        for name in other:
                            what = f"{name} of epoch {mine.epoch}, step {mine.step}"
                            self.assert_column(mine[name], other[name], what)
                        batches += 1
                self.assertTrue(device.ended or not list(device))
        self.assertGreater(batches, 0)

    def test_every_dtype(self):
        rig.needs(self, "numpy")
        rig.needs(self, "ml_dtypes")
        casts = [f"map: {{{dtype}: \"cast(value % {2 if dtype == 'bool' else 100}, '{dtype}')\"}}"
                 for dtype in NUMBERS]  # fmt: skip
        for compression in ("none", "narrow", "zstd"):
            deliver = f"{{epochs: 2, compression: {compression}}}"
            self.assert_stream(rig.pipeline("range: 200", *casts, "batch: 33", deliver=deliver))

    def test_every_kind(self):
        rig.needs(self, "numpy")
        rig.needs(self, "ml_dtypes")
        for compression in ("none", "narrow"):
            self.assert_stream(kinds.pipeline(deliver=f"{{epochs: 2, compression: {compression}}}"))

    def test_columns_come_widened(self):
        rig.needs(self, "numpy")
        rig.needs(self, "ml_dtypes")
        widen = "{byte: {dtype: bfloat16, scale: 0.5, offset: 1}, ragged: {dtype: float32, scale: 0.1}}"
        deliver = f"{{epochs: 1, widen: {widen}}}"
        self.assert_stream(kinds.pipeline("byte", "ragged", "x", deliver=deliver))
        _, reader = self.serve(kinds.pipeline("byte", "x", deliver="{widen: {byte: {dtype: float32}}}"))
        batch = reader.next()
        self.assertEqual((batch.widen("byte").dtype, batch["byte"].dtype), ("float32", "float32"))
        with self.assertRaisesRegex(tundish.ArgumentError, "deliver.widen does not name"):
            batch.widen("x")


class Streams(Case):
    """What a capsule makes the consumer's stream do, and when."""

    def setUp(self):
        super().setUp()
        if gpu.IS_REAL:
            self.skipTest("only the stand-in tells what a stream was given")

    def test_the_consumers_stream_waits_and_its_end_is_recorded(self):
        _, reader = self.serve(rig.pipeline(*ROWS))
        array = reader.next()["value"]
        for stream, handle in ((None, None), (1, 1), (2, 2), (self.stream, self.stream)):
            for version in (None, (1, 0)):
                waits, records = GPU.uses(handle)
                taken = gpu.take(array, stream, max_version=version)
                self.assertEqual(GPU.uses(handle), (waits + 1, records))
                taken.delete()
                # The thread that deletes may have another stream 2: the library waits for all then.
                self.assertEqual(GPU.uses(handle), (waits + 1, records + (stream != 2)))

    def test_without_a_stream_nothing_waits(self):
        _, reader = self.serve(rig.pipeline(*ROWS))
        before = GPU.uses(None), GPU.uses(2), GPU.uses(self.stream)
        gpu.take(reader.next()["value"], -1).delete()
        self.assertEqual((GPU.uses(None), GPU.uses(2), GPU.uses(self.stream)), before)

    def test_a_capsule_that_nobody_takes_gives_its_batch_back(self):
        _, reader = self.serve(rig.pipeline(*ROWS))
        capsule = reader.next()["value"].__dlpack__(stream=self.stream)
        gc.collect()
        self.assertEqual(reader.info.held_count, 1)
        del capsule
        self.assertEqual(reader.info.held_count, 0)

    def test_the_interface_of_cuda_arrays_names_the_default_stream(self):
        _, reader = self.serve(kinds.pipeline("x", "flag", "label", "brain"))
        batch = reader.next()
        waits, _ = GPU.uses(None)
        faces = {name: batch[name].__cuda_array_interface__ for name in ("x", "flag", "label")}
        self.assertEqual(GPU.uses(None)[0], waits + 3)
        taken = gpu.take(batch["x"], self.stream)
        self.addCleanup(taken.delete)
        self.assertEqual(faces["x"], {"shape": (2, 2), "typestr": "<f4", "data": (taken.address, False),
                                      "version": 3, "strides": None, "stream": 1})  # fmt: skip
        self.assertEqual([faces[name]["typestr"] for name in ("flag", "label")], ["|b1", "<i4"])
        self.assertFalse(hasattr(batch["brain"], "__cuda_array_interface__"))

    def test_what_is_not_possible_is_refused(self):
        _, reader = self.serve(rig.pipeline(*ROWS))
        array = reader.next()["value"]
        for request in ({"stream": 0}, {"stream": -2}, {"copy": True}, {"dl_device": (1, 0)},
                        {"dl_device": (2, 1)}):  # fmt: skip
            with self.assertRaises(BufferError, msg=str(request)):
                array.__dlpack__(**request)
        stranger = GPU.driver.fake_cuda_stranger
        stranger.restype = ctypes.c_void_p
        with self.assertRaisesRegex(tundish.ArgumentError, "not of the primary context"):
            array.__dlpack__(stream=stranger())
        gpu.take(array, self.stream, dl_device=(2, 0), copy=False).delete()

    def test_a_stream_that_is_captured_is_refused_and_its_capture_goes_on(self):
        _, reader = self.serve(rig.pipeline(*ROWS))
        arrays, handle, graph = reader.next(), ctypes.c_void_p(self.stream), ctypes.c_void_p()
        taken = gpu.take(arrays["value"], self.stream)
        GPU.call("cuStreamBeginCapture_v2", handle, 0)
        with self.assertRaisesRegex(tundish.ArgumentError, "is being captured"):
            arrays["value"].__dlpack__(stream=self.stream)
        taken.delete()
        del arrays
        for _ in range(5):
            reader.next()
        GPU.call("cuStreamEndCapture", handle, ctypes.byref(graph))
        GPU.call("cuGraphDestroy", graph)
        self.assertEqual(reader.info.held_count, 0)


class Lives(Case):
    """How long a batch's memory is its own."""

    def test_memory_is_used_again_only_after_the_consumers(self):
        """Each batch is copied late on a stream of its own, and let go before the copy is made."""
        _, reader = self.serve(rig.pipeline(*ROWS))
        size, late, event = 80, 25, ctypes.c_void_p()
        GPU.call("cuEventCreate", ctypes.byref(event), 2)
        copies = []
        for batch in reader:
            stream, copy = GPU.stream(), ctypes.c_uint64()
            GPU.call("cuMemAlloc_v2", ctypes.byref(copy), ctypes.c_size_t(size))
            taken = gpu.take(batch["value"], stream)
            handle = ctypes.c_void_p(stream)
            for _ in range(late):
                GPU.call("cuEventRecord", event, handle)
            source = ctypes.c_uint64(taken.address)
            GPU.call("cuMemcpyDtoDAsync_v2", copy, source, ctypes.c_size_t(size), handle)
            taken.delete()
            copies.append((batch.step, copy, stream))
        for step, copy, stream in copies:
            self.assertEqual(GPU.read(copy.value, size, stream), rows(step))

    def test_the_last_array_gives_the_batch_back(self):
        _, reader = self.serve(rig.pipeline(*ROWS))
        batch = reader.next()
        array = batch["value"]
        taken = gpu.take(array, self.stream)
        del batch
        self.assertEqual(reader.info.held_count, 1)
        del array
        self.assertEqual(reader.info.held_count, 1)
        taken.delete()
        self.assertEqual(reader.info.held_count, 0)

    def test_another_thread_may_delete(self):
        _, reader = self.serve(rig.pipeline(*ROWS))
        for batch in reader:
            thread = threading.Thread(target=gpu.take(batch["value"], self.stream).delete)
            thread.start()
            thread.join()
        del batch
        self.assertEqual(reader.info.held_count, 0)

    def test_a_batch_that_is_kept_costs_memory_and_is_warned_of_once(self):
        _, reader = self.serve(rig.pipeline(*ROWS))
        kept = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for batch in reader:
                line = inspect.currentframe().f_lineno - 1
                kept.append(batch)
        self.assertEqual([str(w.category) for w in caught], [str(RuntimeWarning)])
        self.assertIn(f"{__file__}:{line}", str(caught[0].message))
        self.assertIn("cuda:0", str(caught[0].message))
        self.assertEqual([batch.step for batch in kept], list(range(40)))
        for batch in kept:
            self.assert_rows(batch)

    def test_no_batch_costs_more_in_a_plain_loop(self):
        _, reader = self.serve(rig.pipeline(*ROWS))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for batch in reader:
                self.assert_rows(batch)

    def test_on_hold_raises_or_waits(self):
        server, reader = self.serve(rig.pipeline(*ROWS), on_hold="error")
        line = inspect.currentframe().f_lineno + 1
        kept = [reader.next() for _ in range(3)]
        with self.assertRaises(tundish.ArgumentError) as caught:
            reader.next()
        self.assertIn(f"{__file__}:{line}", str(caught.exception))
        kept.pop()
        self.assertEqual(reader.next().step, 3)
        with server.open("train", session="other", device="cuda", on_hold="wait") as other:
            kept = [other.next() for _ in range(3)]
            with self.assertRaises(tundish.Timeout):
                other.next(timeout=0.05)
            self.assertIsNone(other.poll())
            timer = threading.Timer(0.1, kept.clear)
            timer.start()
            self.assertEqual(other.next().step, 3)
            timer.join()

    def test_arrays_outlive_reader_and_server(self):
        server, reader = self.serve(rig.pipeline(*ROWS))
        batches = [reader.next() for _ in range(2)]
        array = batches[0]["value"]
        reader.close()
        server.kill()
        self.assertEqual(content(array, self.stream), rows(0))
        self.assertEqual(batches[1].step, 1)

    def test_all_memory_goes_back_with_the_last_array(self):
        if gpu.IS_REAL:
            self.skipTest("only the stand-in tells what is given out")
        gc.collect()
        before = GPU.alive()
        with rig.serve(rig.pipeline(*ROWS, deliver="{epochs: 2}")) as server:
            reader = server.open("train", device="cuda")
            batch = reader.next()
            taken = gpu.take(batch["value"], self.stream)
            del batch
            reader.close()
            self.assertGreater(GPU.alive(), before)
            taken.delete()
            self.assertEqual(GPU.alive(), before)
            reader = server.open("train", device="cuda", group="other")
            reader.next()
            del reader
            gc.collect()
            self.assertEqual(GPU.alive(), before)


class Reading(Case):
    """A reader with a device is a reader."""

    def test_loops_places_and_facts(self):
        server, reader = self.serve(rig.pipeline(*ROWS, deliver="{epochs: 3}"))
        self.assertEqual((reader.device, len(reader)), ("cuda:0", 40))
        for batch in reader:
            if batch.step == 7:
                state = reader.state_dict()
                break
        self.assertEqual([(batch.epoch, batch.step) for batch in reader], [(1, i) for i in range(40)])
        reader.load_state_dict(state)
        self.assertEqual(next(iter(reader)).step, 8)
        with server.open("train", place=state["place"], session="host") as host:
            self.assertEqual(host.next().step, 8)
        self.assertEqual([batch.epoch for batch in reader], [1] * 40)
        for batch in reader:
            self.assert_rows(batch)
        self.assertEqual(list(reader), [])
        self.assertTrue(reader.ended)
        with self.assertRaises(tundish.EndOfStream):
            reader.next()

    def test_rows_are_explained(self):
        _, reader = self.serve(rig.pipeline(*ROWS))
        self.assertEqual(len(reader.next().rows()), 10)

    def test_async(self):
        import asyncio

        _, reader = self.serve(rig.pipeline(*ROWS))

        async def steps():
            return [batch.step async for batch in reader]

        self.assertEqual(asyncio.run(steps()), list(range(40)))
        with self.assertRaisesRegex(tundish.MisuseError, "no descriptor"):
            reader.fileno()

    def test_a_server_that_comes_back(self):
        server, reader = self.serve(rig.pipeline("range: {stop: 400000}", "batch: 10"))
        last = reader.next().step
        server.kill()
        with self.assertRaises(tundish.ServerGone):
            while True:
                last = reader.next().step
        server.start()
        self.assertEqual(reader.next().step, last + 1)

    def test_the_cpu_is_no_device(self):
        with rig.serve(rig.pipeline(*ROWS)) as server, server.open("train", device="cpu") as reader:
            self.assertIsNone(reader.device)
            self.assertIsInstance(reader.next().array("value"), tundish.Array)


class Misuse(Case):
    def test_another_device_is_refused_with_a_sentence(self):
        with rig.serve(rig.pipeline(*ROWS)) as server:
            for name in ("gpu", "cuda:", "cuda:-1", "cuda:x", "tpu:0", 0):
                with self.assertRaisesRegex(tundish.ArgumentError, "cuda:N", msg=name):
                    server.open("train", device=name)
            with self.assertRaisesRegex(tundish.ArgumentError, "there is no device 99"):
                server.open("train", device="cuda:99")
            with self.assertRaisesRegex(tundish.ArgumentError, "leave out device="):
                server.open("train", device="cuda", format="tf")
            # The replica is free again.
            with server.open("train") as reader:
                self.assertEqual(reader.next().step, 0)

    def test_what_the_host_cannot_read_is_said(self):
        rig.needs(self, "numpy")
        import numpy

        _, reader = self.serve(kinds.pipeline("x", "word", "ragged", "sparse"))
        batch = reader.next()
        for use in (numpy.asarray, memoryview, list, lambda array: array[0]):
            with self.assertRaises(TypeError):
                use(batch["x"])
        with self.assertRaisesRegex(TypeError, "torch.from_dlpack"):
            numpy.asarray(batch["x"])
        with self.assertRaisesRegex(AttributeError, "no 'tolist': take it with torch.from_dlpack"):
            batch["x"].tolist()
        with self.assertRaisesRegex(AttributeError, "memory of cuda:0"):
            batch["word"].to_list()
        for name in ("ragged", "sparse"):
            with self.assertRaisesRegex((AttributeError, TypeError), "memory of cuda:0"):
                batch[name].to_list()
            self.assertIn("cuda:0", repr(batch[name].values))
        self.assertEqual(repr(batch["word"]), "Strings([2], 1 bytes on cuda:0)")
        self.assertEqual((len(batch["x"]), repr(batch["x"])),
                         (2, "<tundish.DeviceArray float32(2, 2) on cuda:0>"))  # fmt: skip

    def test_a_forked_child_is_refused(self):
        _, reader = self.serve(rig.pipeline(*ROWS))
        batch = reader.next()
        array = batch["value"]
        child = os.fork()
        if child == 0:
            failures = 0
            for act in (lambda: reader.next(), lambda: batch["value"], lambda: array.__dlpack__()):
                try:
                    act()
                except (tundish.MisuseError, tundish.ArgumentError):
                    failures += 1
            del batch, array
            os._exit(0 if failures == 2 else failures + 10)
        _, status = os.waitpid(child, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        self.assert_rows(batch)
        self.assertEqual(reader.next().step, 1)


class Drivers(unittest.TestCase):
    """Machines without a GPU, or with a driver that cannot be used: a sentence, and the host reads on."""

    SCRIPT = (
        "import tundish\n"
        "try:\n    tundish.open('train', device='cuda')\n"
        "except tundish.SystemFault as fault:\n    print(fault)\n"
        "print(len(list(tundish.open('train'))))"
    )

    def said(self, **environment):
        environment.setdefault("LD_LIBRARY_PATH", os.path.dirname(gpu.STAND_IN))
        with rig.serve(rig.pipeline(*ROWS)) as server:
            sentence, batches = server.python(self.SCRIPT, **environment).stdout.splitlines()
        self.assertEqual(batches, "40")
        return sentence

    def test_no_driver(self):
        with rig.serve(rig.pipeline(*ROWS)) as server:
            load = "import ctypes\nctypes.CDLL('libcuda.so.1')"
            found = server.python(load, check=False).returncode == 0
        if found:
            self.skipTest("this machine has a driver")
        self.assertIn("there is no NVIDIA driver: libcuda.so.1", self.said(LD_LIBRARY_PATH=""))

    def test_an_old_driver(self):
        said = self.said(FAKE_CUDA_VERSION="9020")
        self.assertIn("too old: it supports CUDA 9.2, and 11.0 is needed", said)

    def test_a_stub_and_no_device(self):
        self.assertIn("stub", self.said(FAKE_CUDA_INIT="34"))
        self.assertIn("there is no GPU (CUDA_VISIBLE_DEVICES", self.said(FAKE_CUDA_INIT="100"))

    def test_a_failure_of_the_driver_names_itself(self):
        sentence = self.said(FAKE_CUDA_FAIL="cuDevicePrimaryCtxRetain:1")
        self.assertIn("CUDA_ERROR_UNKNOWN", sentence)

    def test_a_failure_later_is_raised_by_next(self):
        script = (
            "import tundish\n"
            "reader = tundish.open('train', device='cuda')\n"
            "try:\n    list(reader)\nexcept tundish.SystemFault as fault:\n    print(fault)\n"
            "reader.close()\nprint(len(list(tundish.open('train', session='other'))))"
        )
        environment = {"LD_LIBRARY_PATH": os.path.dirname(gpu.STAND_IN)}
        for fail in ("cuMemcpyHtoDAsync_v2:3", "cuMemcpyHtoDAsync_v2:3:lost", "cuMemAlloc_v2:2"):
            with rig.serve(rig.pipeline(*ROWS)) as server:
                said = server.python(script, FAKE_CUDA_FAIL=fail, **environment).stdout.splitlines()
                self.assertIn("CUDA_ERROR_UNKNOWN", said[0], fail)
                self.assertEqual(said[1:], ["40"], fail)

    def test_the_end_of_the_process(self):
        environment = {"LD_LIBRARY_PATH": os.path.dirname(gpu.STAND_IN)}
        ends = (
            "print('bye')",
            "reader.close()\nprint('bye')",
            "import sys\nsys.kept = capsule = batch['value'].__dlpack__()\nprint('bye')",
            "loop = [batch]\nloop.append(loop)\nreader.again = batch\nprint('bye')",
        )
        with rig.serve(rig.pipeline(*ROWS, deliver="{epochs: null}")) as server:
            for end in ends:
                begin = "import tundish\nreader = tundish.open('train', device='cuda')\n"
                result = server.python(f"{begin}batch = reader.next()\n{end}", **environment)
                self.assertEqual((result.stdout, result.stderr), ("bye\n", ""), end)


class Adapters(Case):
    """As far as frameworks for the CPU alone show it: that they ask, and what they are told."""

    def test_torch_asks_for_its_stream(self):
        torch = rig.needs(self, "torch")
        from tundish.torch import DataLoader

        server, reader = self.serve(rig.pipeline(*ROWS))
        if not torch.cuda.is_available():
            with self.assertRaisesRegex((AssertionError, RuntimeError), "CUDA"):
                torch.from_dlpack(reader.next()["value"])
        for option in ("pin_memory", "zero_copy"):
            with self.assertRaisesRegex(tundish.ArgumentError, f"{option} is for batches in the CPU"):
                DataLoader("train", server=server.socket, device="cuda", **{option: True})
            with self.assertRaisesRegex(tundish.ArgumentError, f"{option} is for batches in the CPU"):
                DataLoader(reader, **{option: True})
        self.assertIs(DataLoader(reader).reader, reader)

    def needs_gpu_of(self, library, is_there):
        if not gpu.IS_REAL or not is_there(library):
            self.skipTest(f"needs a GPU, and {library.__name__} for it: scripts/test gpu")

    def test_torch_takes_every_kind(self):
        torch = rig.needs(self, "torch")
        self.needs_gpu_of(torch, lambda torch: torch.cuda.is_available())
        from tundish.torch import DataLoader

        with rig.serve(kinds.pipeline(deliver="{epochs: 1}")) as server:
            for step, batch in enumerate(DataLoader("train", server=server.socket, device="cuda")):
                for name in kinds.DENSE:
                    self.assertEqual(batch[name].device, torch.device("cuda:0"), name)
                    self.assertEqual(batch[name].tolist(), kinds.BATCHES[step][name], name)
                    batch[name].zero_()
                found = batch["sparse"].to_dense().tolist()
                self.assertEqual(found, kinds.BATCHES[step]["sparse"])
                rows = [row.tolist() for row in batch["ragged"].unbind()]
                self.assertEqual(rows, kinds.BATCHES[step]["ragged"])
                self.assertIsInstance(batch["word"].bytes, tundish.DeviceArray)

    def test_torch_trains_in_order_on_streams_of_its_own(self):
        torch = rig.needs(self, "torch")
        self.needs_gpu_of(torch, lambda torch: torch.cuda.is_available())
        _, reader = self.serve(rig.pipeline(*ROWS), format="torch")
        streams, sums = [torch.cuda.Stream() for _ in range(3)], []
        for batch in reader:
            with torch.cuda.stream(streams[batch.step % 3]):
                values = torch.from_dlpack(batch.array("value"))
                torch.cuda._sleep(2_000_000)
                sums.append(values.sum())
            del batch, values
        torch.cuda.synchronize()
        self.assertEqual([int(one) for one in sums], [100 * step + 45 for step in range(40)])

    def test_jax_takes_them(self):
        jax = rig.needs(self, "jax")
        self.needs_gpu_of(jax, lambda jax: jax.default_backend() == "gpu")
        _, reader = self.serve(kinds.pipeline("x", "label", "ragged"), format="jax")
        for step, batch in enumerate(reader):
            self.assertEqual(batch["x"].devices(), {jax.devices("gpu")[0]})
            self.assertEqual(batch["x"].tolist(), kinds.BATCHES[step]["x"])
            self.assertEqual(int(batch["label"].sum()), sum(kinds.BATCHES[step]["label"]))

    def test_cupy_takes_them_both_ways(self):
        cupy = rig.needs(self, "cupy")
        self.needs_gpu_of(cupy, lambda cupy: cupy.cuda.is_available())
        _, reader = self.serve(rig.pipeline(*ROWS))
        for batch in reader:
            for taken in (cupy.from_dlpack(batch["value"]), cupy.asarray(batch["value"])):
                self.assertEqual(int(taken.sum()), 100 * batch.step + 45)

    def test_other_adapters_say_that_they_read_the_host(self):
        rig.needs(self, "keras")
        from tundish.keras import Adapter

        _, reader = self.serve(rig.pipeline(*ROWS))
        with self.assertRaisesRegex(tundish.ArgumentError, "without device="):
            Adapter(reader, x="value")


if __name__ == "__main__":
    unittest.main()
