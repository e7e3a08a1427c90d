"""What travels in fewer bytes and is made whole by the consumer."""

import json
import subprocess
import unittest
from pathlib import Path

from rig import TUNDISH, Rig, batches

PIXELS = ["range: 12", 'map: {value: "cast([value, value + 1, value * 20], uint8)"}', "batch: 5"]


class Widened(Rig):
    def plan(self, file, *options):
        command = [TUNDISH, "plan", file, *options]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        return done.stdout + done.stderr

    def pixels(self, widen):
        return self.pipeline(PIXELS, deliver=f"{{epochs: 1, widen: {{{widen}}}}}")

    def test_columns_become_floats_at_the_consumer(self):
        self.serve(self.pixels("value: {dtype: float32, scale: [0.5, 2, 0.25], offset: -1}"))
        lines = self.lines(self.read("--widen"))
        floats = [list(map(float, line.split()[1:])) for line in lines if line.startswith("floats")]
        self.assertEqual([len(batch) // 3 for batch in floats], [5, 5, 2])
        rows = [(0.5 * i - 1, 2.0 * (i + 1) - 1, 0.25 * (i * 20) - 1) for i in range(12)]
        self.assertEqual(sum(floats, []), [value for row in rows for value in row])

    def test_columns_are_delivered_as_they_are(self):
        self.serve(self.pixels("value: {dtype: float32, scale: 0.5}"))
        lines = self.lines(self.read("--widen", "--batches", "1"))
        self.assertIn("floats 0 0.5 0 0.5 1 10 1 1.5 20 1.5 2 30 2 2.5 40", lines)
        text = self.plan(self.pixels("value: {dtype: float32, scale: 0.5}"))
        self.assertIn("uint8[-1,3], widened by the consumer to float32: scale 0.5 offset 0", text)
        plan = json.loads(self.plan(self.pixels('"v*": {dtype: bfloat16, offset: 3}'), "--json"))
        wanted = {"value": {"dtype": "bfloat16", "scale": [1], "offset": [3]}}
        self.assertEqual(plan["widen"], wanted)
        self.assertEqual(plan["element_spec"][0]["dtype"], "uint8")

    def test_channels_of_images_come_first_where_asked(self):
        parts = ", ".join(f"value * 12 + {i}" for i in range(12))
        images = ["range: 3", f'map: {{value: "cast([{parts}], uint8)"}}',
                  "reshape: {columns: value, shape: [2, 2, 3]}", "batch: 2"]  # fmt: skip
        widen = "value: {dtype: float32, scale: [1, 2, 4], offset: 0.5, layout: NCHW}"
        file = self.pipeline(images, deliver=f"{{epochs: 1, widen: {{{widen}}}}}")
        self.serve(file)
        lines = self.lines(self.read("--widen"))
        floats = [list(map(float, line.split()[1:])) for line in lines if line.startswith("floats")]
        wanted = [
            [(image * 12 + pixel * 3 + channel) * 2**channel + 0.5 for channel in range(3) for pixel in range(4)]
            for image in range(3)
        ]
        self.assertEqual(floats, [wanted[0] + wanted[1], wanted[2]])
        self.assertIn("offset 0.5 layout NCHW", self.plan(file))
        self.assertEqual(json.loads(self.plan(file, "--json"))["widen"]["value"]["layout"], "NCHW")

    def test_only_batches_of_images_have_channels_to_put_first(self):
        file = self.pipeline(PIXELS, deliver="{widen: {value: {dtype: float32, layout: NCHW}}}")
        said = self.plan(file)
        line = 1 + Path(file).read_text().splitlines().index(
            next(line for line in Path(file).read_text().splitlines() if "NCHW" in line))
        self.assertIn(f"{file}:{line}:", said)
        self.assertIn("4 dimensions (batch, height, width, channels), but column 'value' has 2: ", said)
        self.assertIn("leave layout out", said)
        said = self.plan(self.pixels("value: {dtype: float32, layout: CHWN}"))
        self.assertRegex(said, "layout of widen .*NHWC")

    def test_columns_that_cannot_be_are_named(self):
        for widen, answer in (
            ("value: {dtype: float32, scale: [1, 2]}", "is 3, the list has 2 numbers"),
            ("other: {dtype: float32}", "other"),
            ("valu: {dtype: float32}", "value"),
        ):
            with self.subTest(widen=widen):
                self.assertIn(answer, self.plan(self.pixels(widen)))
        strings = ["range: 3", 'map: {value: "\'a\'"}', "batch: 2"]
        file = self.pipeline(strings, deliver="{widen: {value: {dtype: float32}}}")
        self.assertIn("is string, of which float32 cannot be made", self.plan(file))


class Compressed(Rig):
    STAGES = [
        "range: 80000",
        'map: {value: "value % 7"}',
        "integer_lookup: {columns: value, vocabulary: [0, 1, 2, 3, 4, 5, 6], output: known}",
        "batch: 40000",
    ]

    def run_with(self, deliver):
        """The batches, and what the server said."""
        (self.path / "log").write_text("")
        server = self.serve(self.pipeline(self.STAGES, deliver=f"{{epochs: 1, {deliver}}}"))
        self.chosen = self.figures()["compression"][0]
        said = subprocess.run([TUNDISH, "status", "--interval", "10"], env=self.environment,
                              capture_output=True, text=True)
        self.status = " ".join(said.stdout.split())
        found = batches(self.lines(self.read()))
        server.terminate()
        server.wait()
        return found, (self.path / "log").read_text()

    def test_nothing_is_while_there_is_memory(self):
        _, log = self.run_with("compression: auto")
        self.assertNotIn("scarce", log)
        self.chose("auto", "columns as they are", "since there is memory for that")
        self.assertEqual(self.chosen["lanes_bytes"], self.chosen["uncompressed_bytes"])

    def chose(self, asked, how, why):
        """What `status` says, to programs and to people."""
        self.assertEqual((self.chosen["asked"], self.chosen["why"]), (asked, why))
        self.assertRegex(self.chosen["how"], how)
        self.assertIn(f"{self.chosen['how']}, {why}", self.status)

    def test_is_told_as_it_was_asked_for(self):
        self.run_with("compression: zstd")
        self.chose("zstd", "^value by zstd, known by bitpack$", "as the file says")
        self.assertLess(self.chosen["lanes_bytes"], self.chosen["uncompressed_bytes"] / 4)
        self.assertEqual(self.chosen["batch_bytes"] + self.chosen["saved_bytes"], 2 * 8 * 40000)
        self.run_with("compression: none")
        self.chose("none", "columns as they are", "as the file says")

    def test_is_chosen_by_its_cost_when_memory_is_tight(self):
        expected, _ = self.run_with("compression: none")
        found, log = self.run_with("memory_limit: 16MiB")
        self.assertEqual(found, expected)
        if self.chosen["how"] == "columns as they are":
            self.chose("auto", ".", "since less memory would cost more than it saves")
            self.assertEqual(self.chosen["saved_bytes"], 0)
        else:
            self.chose("auto", ".", "since memory is tight and that costs less than it saves")
            self.assertIn("memory is tight: column ", log)
            self.assertLess(self.chosen["cost_seconds"], self.chosen["worth_seconds"])
            self.assertLess(self.chosen["lanes_bytes"], self.chosen["uncompressed_bytes"])

    def test_columns_are_when_memory_is_scarce(self):
        expected, _ = self.run_with("compression: none")
        found, log = self.run_with("memory_limit: 2MiB")
        self.assertEqual(found, expected)
        self.assertIn("memory is scarce: column value is stored by zstd", log)
        self.chose("auto", "value by zstd", "since memory is scarce")
        self.assertLessEqual(self.chosen["lanes_bytes"], 2 << 20)
        self.assertRegex(log, "memory is scarce: column known is stored by (bitpack|narrow|zstd)")

    def test_no_more_columns_are_than_must_be(self):
        found, log = self.run_with("memory_limit: 4915KiB")
        self.assertEqual([len(values) for _, _, values in found], [40000, 40000])
        self.assertEqual(log.count("memory is scarce"), 1, log)

    def test_a_limit_holds_without(self):
        file = self.pipeline(self.STAGES, deliver="{compression: none, memory_limit: 2MiB}")
        command = [TUNDISH, "serve", file]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        self.assertIn("memory_limit", done.stderr)

    def test_batches_are_the_same(self):
        stages = ["range: 5000", 'map: {value: "value % 7"}', "batch: 500"]
        expected = None
        for compression in ("none", "narrow", "zstd", "auto"):
            with self.subTest(compression=compression):
                deliver = f"{{epochs: 1, compression: {compression}}}"
                server = self.serve(self.pipeline(stages, deliver=deliver))
                found = batches(self.lines(self.read()))
                expected = expected or found
                self.assertEqual(found, expected)
                server.terminate()
                server.wait()


if __name__ == "__main__":
    unittest.main()
