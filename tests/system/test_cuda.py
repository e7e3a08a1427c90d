#!/usr/bin/env python3
"""Streams read to a device are those read to the host, bit by bit, over all dtypes, kinds and encodings.

The device is the stand-in for a driver of tests/cuda, or a real one.
"""

import os
import unittest

from rig import Rig

EQUALS = os.environ.get("TUNDISH_CUDA_EQUALS", "")
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
            widen = ", ".join(f"{name}: {{dtype: {dtype}, scale: 0.3, offset: -7.1}}" for name in NUMBERS)
            for compression in ("none", "narrow"):
                self.assert_equal(self.dense(), compression, f", widen: {{{widen}}}")

    def test_lists_of_factors_run_along_the_last_dimension(self):
        stages = [f"range: {ROWS}", "map: {a: value, b: value * 3, c: value - 9}",
                  "stack: {columns: [a, b, c], output: x}", "batch: 16"]  # fmt: skip
        widen = ", widen: {x: {dtype: float32, scale: [0.5, 0.25, 0.1], offset: [1, 2, 3]}}"
        for compression in ("none", "narrow"):
            self.assert_equal(stages, compression, widen)

    def test_channels_of_images_come_first(self):
        for height, width, channels in ((2, 2, 3), (7, 1, 3), (1, 9, 5), (6, 5, 1)):
            values = ", ".join(f"value * 7 + {i}" for i in range(height * width * channels))
            stages = [f"range: {ROWS}", f"map: {{x: \"cast([{values}], 'uint8')\"}}",
                      f"reshape: {{columns: x, shape: [{height}, {width}, {channels}]}}",
                      "select: x", "batch: 60"]  # fmt: skip
            scale = ", ".join(str(0.3 + i) for i in range(channels))
            for dtype in ("bfloat16", "float32", "float64"):
                widen = f", widen: {{x: {{dtype: {dtype}, scale: [{scale}], offset: -1.7, layout: NCHW}}}}"
                self.assert_equal(stages, "none", widen)

    def test_texts_and_lists(self):
        (self.path / "lines").write_text("".join(f"{'x ' * (i % 7)}{i}\n" for i in range(ROWS)))
        stages = ["text_line: lines", "batch: 32", "string_split: {columns: value, output: words}",
                  "hashing: {columns: words, num_bins: 50, output: ids}"]  # fmt: skip
        for compression in ("none", "narrow", "zstd"):
            self.assert_equal(stages, compression)


if __name__ == "__main__":
    unittest.main()
