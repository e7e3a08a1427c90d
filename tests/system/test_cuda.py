#!/usr/bin/env python3
"""Streams read to a device are those read to the host, bit by bit, over all dtypes, kinds and encodings.

The device is the stand-in for a driver of tests/cuda, or a real one.
"""

import os
import shutil
import subprocess
import sys
import time
import unittest
from pathlib import Path

from rig import TUNDISH, Rig

EQUALS = os.environ.get("TUNDISH_CUDA_EQUALS", "")
STEPS = os.environ.get("TUNDISH_CUDA_STEPS", "")
LIBRARY = os.environ.get("TUNDISH_CUDA_LIBRARY", "")
KERNEL = Path(__file__).resolve().parents[2] / "sdk/cuda"
PATIENCE_S = 120
PREFETCH = os.environ.get("TUNDISH_CUDA_PREFETCH", "")
IS_REAL = os.environ.get("TUNDISH_TEST_GPU") == "1"
ROWS = 500
NUMBERS = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16",
           "bfloat16", "float32", "float64")  # fmt: skip


class Cuda(Rig):
    def assert_equal(self, stages, compression, deliver=""):
        file = self.pipeline(stages, "{groups: 2}",
                             f"{{epochs: 2, compression: {compression}{deliver}}}")
        self.serve(file)
        done = self.start([EQUALS])
        out, _ = done.communicate()
        self.assertEqual(done.returncode, 0, out)
        batches, epochs, packed = (int(word) for word in out.split() if word.isdigit())
        self.assertEqual(epochs, 2, out)
        self.assertIn("then END_OF_STREAM", out)
        self.end_all()
        self.processes.clear()
        return packed

    def dense(self):
        casts = [f"map: {{{dtype}: \"cast(value % {2 if dtype == 'bool' else 100}, '{dtype}')\"}}"
                 for dtype in NUMBERS]  # fmt: skip
        return [f"range: {ROWS}", *casts, "batch: 33"]

    def test_every_dtype(self):
        for compression in ("none", "narrow", "zstd"):
            packed = self.assert_equal(self.dense(), compression)
            if compression != "zstd":  # which may pack as well
                self.assertEqual(packed > 0, compression == "narrow", compression)

    def test_every_dtype_widened(self):
        for dtype in ("float16", "bfloat16", "float32", "float64"):
            for scale, offset in ((0.3, -7.1), (1e300, -1e300)):  # as floats, infinite: NaN is made of all
                widen = f"{{dtype: {dtype}, scale: {scale}, offset: {offset}}}"
                widen = ", ".join(f"{name}: {widen}" for name in NUMBERS)
                for compression in ("none", "narrow"):
                    self.assert_equal(self.dense(), compression, f", widen: {{{widen}}}")

    def test_lists_of_factors_run_along_the_last_dimension(self):
        for made in ("value", "cast(value % 256, 'uint8')"):
            stages = [f"range: {ROWS}", f"map: {{a: \"{made}\", b: \"{made} * 3\", c: \"{made} - 9\"}}",
                      "stack: {columns: [a, b, c], output: x}", "batch: 16"]  # fmt: skip
            for dtype in ("float16", "float32"):
                widen = f", widen: {{x: {{dtype: {dtype}, scale: [0.5, 0.25, 0.1], offset: [1, 2, 3]}}}}"
                for compression in ("none", "narrow"):
                    self.assert_equal(stages, compression, widen)

    def test_channels_of_images_come_first(self):
        for height, width, channels in ((2, 2, 3), (7, 1, 3), (4, 6, 3), (1, 9, 5), (6, 5, 1)):
            values = ", ".join(f"value * 7 + {i}" for i in range(height * width * channels))
            stages = [f"range: {ROWS}", f"map: {{x: \"cast([{values}], 'uint8')\"}}",
                      f"reshape: {{columns: x, shape: [{height}, {width}, {channels}]}}",
                      "select: x", "batch: 60"]  # fmt: skip
            scale = ", ".join(str(0.3 + i) for i in range(channels))
            for dtype in ("float16", "bfloat16", "float32", "float64"):
                widen = f", widen: {{x: {{dtype: {dtype}, scale: [{scale}], offset: -1.7, layout: NCHW}}}}"
                self.assert_equal(stages, "none", widen)

    def test_texts_and_lists(self):
        (self.path / "lines").write_text("".join(f"{'x ' * (i % 7)}{i}\n" for i in range(ROWS)))
        stages = ["text_line: lines", "batch: 32", "string_split: {columns: value, output: words}",
                  "hashing: {columns: words, num_bins: 50, output: ids}"]  # fmt: skip
        for compression in ("none", "narrow", "zstd"):
            self.assert_equal(stages, compression)

    def test_auto_packs_what_a_device_expands(self):
        self.assertGreater(self.assert_equal(self.dense(), "auto"), 0)


class Trainers(Rig):
    STAGES = ["range: 660", "hashing: {columns: value, num_bins: 1000, output: id}", "batch: 33"]

    def trainer(self, *options, **environment):
        return self.start([STEPS, "--hold", *options], stdin=subprocess.PIPE, **environment)

    def steps(self, trainer, count):
        """The lines of the next batches: (epoch, step), sum and place."""
        lines = []
        while len(lines) < count:
            words = trainer.stdout.readline().split()
            self.assertTrue(words, "the trainer has ended")
            if words[0] == "batch":
                lines.append(((int(words[1]), int(words[2])), int(words[3]), words[4]))
            trainer.stdin.write("\n")
            trainer.stdin.flush()
        return lines

    def wait_for(self, look):
        """What `look` says of the stream's figures, once it is true."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := look(self.figures())):
            self.assertLess(time.monotonic(), deadline, self.figures())
        return found

    def told(self, stages, mode, **environment):
        """What the server says of the device of a trainer that has read some batches."""
        self.serve(self.pipeline(stages, deliver="{epochs: null}"))
        trainer = self.trainer("--mode", mode, **environment)
        self.steps(trainer, 40)
        found = self.wait_for(lambda stream: stream["devices"])
        self.assertEqual(len(found), 1)
        said = subprocess.run([TUNDISH, "status", "--interval", "10"], env=self.environment,
                              capture_output=True, text=True)
        self.status = " ".join(said.stdout.split())
        self.encodings = {one["codec"] for one in self.figures()["encodings"]}
        self.end_all()
        self.processes.clear()
        return found[0]

    def test_status_tells_how_batches_get_to_a_device(self):
        one = self.told(self.STAGES, "0")
        mode, why = "copy", "may not write"
        if IS_REAL and one["mode"] == "pin":  # which is the driver's to say
            mode, why = "pin", "the driver took the shared memory"
        self.assertEqual((one["mode"], one["replica"]), (mode, "0"))
        self.assertIn(why, one["why"])
        self.assertGreater(one["copied_bytes"], 40 * 33)
        self.assertGreater(one["copy_seconds"], 0)
        self.assertGreater(one["kernel_seconds"], 0)
        self.assertGreater(one["wait_seconds"], 0)
        self.assertIn(f"mode {mode}, since the ", self.status)
        self.assertIn("id by bitpack, for trainers that expand it on a device", self.status)
        self.assertIn("bitpack", self.encodings)
        if mode == "copy":  # which may be slower than it could be
            self.assertIn(why, (self.path / "log").read_text())

    def test_status_tells_of_registered_memory(self):
        if IS_REAL:
            self.skipTest("whether memory can be registered is the driver's to say")
        one = self.told(self.STAGES, "2", FAKE_CUDA_REGISTER="1")
        self.assertEqual((one["mode"], one["why"]), ("pin", "as the program asked"))

    def test_a_successor_at_the_place_goes_on_after_the_last_batch_returned(self):
        for mode in ("1", "2"):
            self.serve(self.pipeline([self.STAGES[0], "shuffle: {buffer_size: 100, seed: 3}",
                                      self.STAGES[2]], deliver="{epochs: 2}"))  # fmt: skip
            trainer = self.trainer("--mode", mode, FAKE_CUDA_REGISTER="1")
            before = self.steps(trainer, 7)
            # It may have been given one more by now; that one is not in its checkpoint.
            trainer.kill()
            trainer.wait()
            successor = self.start([STEPS, "--mode", mode], PLACE=before[-1][2], FAKE_CUDA_REGISTER="1")
            out, _ = successor.communicate(timeout=PATIENCE_S)
            after = [line.split() for line in out.splitlines() if line.startswith("batch")]
            seen = [step for step, _, _ in before] + [(int(w[1]), int(w[2])) for w in after]
            self.assertEqual(seen, [(epoch, step) for epoch in range(2) for step in range(20)])
            for epoch in range(2):
                sums = [total for (of, _), total, _ in before if of == epoch]
                sums += [int(w[3]) for w in after if int(w[1]) == epoch]
                self.assertEqual(sum(sums), sum(range(660)))
            self.end_all()
            self.processes.clear()

    def test_the_host_reads_on_where_there_is_no_device(self):
        hidden = ("there is no GPU", {"CUDA_VISIBLE_DEVICES": "", "FAKE_CUDA_INIT": "100"})
        for why, environment in (hidden,) if IS_REAL else (
            hidden,
            ("there is no NVIDIA driver: ", {"LD_LIBRARY_PATH": ""}),
            ("is the toolkit's stub", {"FAKE_CUDA_INIT": "34"}),
            ("too old: it supports CUDA 10.2, and 11.0 is needed", {"FAKE_CUDA_VERSION": "10020"}),
            ("CUDA_ERROR_OUT_OF_MEMORY", {"FAKE_CUDA_FAIL": "cuStreamCreateWithPriority:1:memory"}),
            ("CUDA_ERROR_UNKNOWN", {"FAKE_CUDA_FAIL": "cuDevicePrimaryCtxRetain:1:lost"}),
        ):
            with self.subTest(why=why):
                self.serve(self.pipeline(self.STAGES, deliver="{epochs: 1}"))
                out, _ = self.start([STEPS], **environment).communicate(timeout=PATIENCE_S)
                self.assertIn("no device: ", out)
                self.assertIn(why, out)
                self.assertIn("host 20 batches, then END_OF_STREAM", out)
                self.end_all()
                self.processes.clear()


class Library(unittest.TestCase):
    def test_needs_no_library_of_cuda(self):
        needed = subprocess.run(["ldd", LIBRARY], capture_output=True, text=True, check=True).stdout
        names = [line.split()[0] for line in needed.splitlines()]
        self.assertTrue(any(name.startswith("libtundish.so") for name in names), needed)
        self.assertFalse([name for name in names if "cuda" in name or "nv" in name], needed)

    @unittest.skipUnless(shutil.which("clang"), "the kernel is compiled with clang")
    def test_a_fused_multiplication_is_refused(self):
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            clang, made = Path(folder) / "clang", Path(folder) / "image.c"
            includes = f"{KERNEL.parent}:{KERNEL.parent}/include"
            command = [sys.executable, KERNEL / "embed_kernel", made, KERNEL / "kernels.cu", includes, ""]
            for option, fuses in (("", False), ("-ffp-contract=fast", True)):
                clang.write_text(f'#!/bin/sh\nexec {shutil.which("clang")} "$@" {option}\n')
                clang.chmod(0o700)
                done = subprocess.run([*command, clang], capture_output=True, text=True)
                self.assertEqual("fused a multiplication" in done.stderr, fuses, done.stderr)
                self.assertEqual(made.exists() and not fuses, not fuses)
                made.unlink(missing_ok=True)


class Example(Rig):
    """sdk/examples/cuda_prefetch.c"""

    def said(self, **environment):
        self.serve(self.pipeline([f"range: {ROWS}", "batch: 50"]))
        done = self.start([PREFETCH], **environment)
        out, _ = done.communicate()
        self.assertEqual(done.returncode, 0, out)
        return out.splitlines()

    def test_batches_come_to_the_device(self):
        (line,) = self.said()
        self.assertRegex(line, r"^10 batches of 500 values, [0-9.]+ us for each to be there$")

    def test_without_a_device_it_says_so_and_reads_to_the_host(self):
        why, line = self.said(CUDA_VISIBLE_DEVICES="", FAKE_CUDA_INIT="100")
        self.assertRegex(why, "^reading to the host: there is no GPU")
        self.assertRegex(line, "^10 batches of 500 values, ")


if __name__ == "__main__":
    unittest.main()
