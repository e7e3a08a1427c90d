"""Pictures: stages made as one give what they give one after the other, random ones always the same."""

import re
import subprocess
import unittest
from pathlib import Path

from rig import TUNDISH, Rig, batches, place, stop

DATA = Path(__file__).parents[1] / "conformance" / "cases" / "data"
NAMES = "rgb 444 gray prog cmyk any anyf exif cut png1 png2 png4 png16 pngp pngcut gif webp empty not"
APART = "rename: {value: picture}", "rename: {picture: value}"
DECODERS = (
    "decode_jpeg: {channels: 3}",
    "decode_jpeg: {channels: 1, try_recover_truncated: true}",
    "decode_jpeg: {channels: 3, acceptable_fraction: 0.2}",
    "decode_jpeg: {channels: 3, scaled: true}",
    "decode_image: {channels: 3, expand_animations: false}",
)
SIZES = (
    "resize: {size: [7, 9]}",
    "resizing: {height: 50, width: 41}",
    "resizing: {height: 20, width: 41, crop_to_aspect_ratio: true}",
    "random_resized_crop: {height: 33, width: 21, area_range: [0.02, 1.0], seed: 6}",
)
RANDOM = (
    "resize: {size: [12, 10]}",
    "random_flip: {seed: 1}",
    "random_rotation: {factor: 0.3, seed: 2}",
    "random_zoom: {height_factor: 0.4, seed: 3}",
    "random_brightness: {factor: 0.5, seed: 4}",
    "random_crop: {height: 6, width: 5, seed: 5}",
    "cast: int64",
)


def files(names):
    return "tfrecord: [" + ", ".join(str(DATA / f"content_img_{name}.tfrecord") for name in names) + "]"


class Pictures(Rig):
    def said(self, stages, deliver):
        """All that peek prints but times: digests of batches, what it skipped, and how it ended."""
        command = [TUNDISH, "peek", self.pipeline(stages, deliver=deliver), "--json"]
        out = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        log = [re.sub(r"^[0-9-]+T[0-9:.]+Z ", "", line) for line in out.stderr.splitlines()]
        lines = out.stdout.splitlines() + log
        return [hash(line) if '"columns"' in line else line for line in lines]

    def test_are_alike_in_one_go_and_stage_by_stage(self):
        good = 0
        for decoder in DECODERS:
            for size in SIZES[:3] if "scaled" in decoder else SIZES:
                for cast in ((), ("cast: uint8",)):
                    with self.subTest(decoder=decoder, size=size, cast=cast):
                        first, last = ((), ()) if "scaled" in decoder else ((APART[0],), (APART[1],))
                        between = ("rescaling: {scale: 1.0}",) if "scaled" in decoder else ()
                        one = [files(NAMES.split()), decoder, size, *cast, "batch: 30"]
                        apart = [one[0], decoder, *first, *between, size, *last, *cast, "batch: 30"]
                        skipping = "{epochs: 1, on_error: skip}"
                        found = self.said(one, skipping)
                        self.assertEqual(found, self.said(apart, skipping))
                        good += sum(isinstance(line, int) for line in found)
        self.assertEqual(good, 38)

    def test_that_are_bad_are_named_by_their_files(self):
        (self.path / "cat").mkdir()
        (self.path / "cat" / "torn.jpg").write_bytes(b"\xff\xd8 torn")
        listed = "list_files: {file_pattern: 'cat/*.jpg'}"
        inside = "flat_map: [from_tensors: {value: $value}, read_file: {columns: value}," \
            " decode_jpeg: {columns: value}]"
        for stages in (
            [listed, "read_file: {columns: value}", "decode_jpeg: {columns: value}"],
            [listed, "read_file: {columns: value}", "decode_jpeg", "resize: {size: [7, 9]}"],
            [f"directory: {{directory: {self.path}}}", "decode_jpeg: {columns: value}"],
            [listed, inside],
        ):
            for deliver in ("{epochs: 1}", "{epochs: 1, on_error: skip}"):
                with self.subTest(stages=stages, deliver=deliver):
                    said = " ".join(map(str, self.said([*stages, "batch: 1"], deliver)))
                    self.assertIn("cat/torn.jpg: decode_jpeg: ", said)

    def test_that_are_bad_are_complained_of_alike(self):
        for name in ("cut", "not", "empty", "pngcut"):
            one = [files(["rgb", name]), DECODERS[0], SIZES[0], "cast: uint8"]
            apart = [*one[:2], APART[0], SIZES[0], "cast: {dtype: uint8}", APART[1]]
            found = self.said(one, "{epochs: 1}")
            self.assertIn(f"{name}.tfrecord", found[-1])
            self.assertEqual(found, self.said(apart, "{epochs: 1}"))

    def test_that_are_handed_in_are_not_drawn_upon(self):
        said = []
        for layers in ([], ["random_flip: {seed: 1}", "random_rotation: {factor: 0.3, seed: 2}"]):
            file = self.pipeline([files(["rgb"]), DECODERS[0], SIZES[0], *layers])
            command = [TUNDISH, "transform", file, "--from", "tfrecord", "--to", "jsonl"]
            with open(DATA / "content_img_rgb.tfrecord", "rb") as rows:
                out = subprocess.run(command, env=self.environment, capture_output=True, stdin=rows)
            self.assertEqual(out.returncode, 0, out.stderr)
            said.append(out.stdout)
        self.assertIn(b'"value"', said[0])
        self.assertEqual(said[0], said[1])

    def test_drawn_upon_hang_neither_on_threads_nor_on_a_restart(self):
        stages = [files(["rgb", "444", "prog", "exif"]), "repeat: 12", DECODERS[0], *RANDOM, "batch: 4"]
        file = self.pipeline(stages, deliver="{epochs: 2}")
        expected = self.peek(file, "--epochs", "2")[0]
        self.assertNotEqual(expected[0][2], expected[1][2])
        for threads, others in ((1, 3), (3, 1)):
            server = self.serve(file, "--threads", str(threads))
            first = self.lines(self.read("--batches", "7"))
            stop(server)
            server = self.serve(file, "--threads", str(others))
            rest = self.lines(self.read("--place", place(first)))
            stop(server)
            self.assertEqual(batches(first) + batches(rest), expected)


if __name__ == "__main__":
    unittest.main()
