"""The jobs of docs/gallery and the tutorial run as they stand there, and print what they say."""

import importlib.util
import re
import unittest

import walk

TUTORIAL = (walk.MANUAL / "tutorial.md").read_text()
GALLERY = walk.MANUAL / "gallery"
PAGES = sorted(path.stem for path in GALLERY.glob("*.md") if path.stem != "index")
NEEDS = {"parquet": "pyarrow", "dataset": "jax"}


class Gallery(walk.Walk):
    def job(self, name):
        if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
            self.skipTest(f"needs {NEEDS[name]}: it is not installed")
        text = (GALLERY / f"{name}.md").read_text()
        self.write(walk.files_of((GALLERY / "index.md").read_text()) | walk.files_of(text))
        said = [self.said(command) for command in walk.commands_of(text)]
        expected = re.search(r"\nprints\n\n```text\n(.*?)```", text, re.DOTALL)[1]
        self.assertEqual(said[-1], expected)

    def test_every_page_is_in_the_index(self):
        listed = re.search(r"```\{toctree\}\n:maxdepth: 1\n\n(.*?)```", (GALLERY / "index.md").read_text(), re.DOTALL)
        self.assertEqual(sorted(listed[1].split()), PAGES)


for page in PAGES:
    setattr(Gallery, f"test_{page}", lambda self, page=page: self.job(page))


class Tutorial(walk.Walk):
    """The run that is killed and resumed is the one that was not."""

    def test_it_leads_where_it_says(self):
        files = walk.files_of(TUTORIAL)
        self.assertEqual([*files], ["make_photos.py", "photos.yaml", "train.py"])
        self.write(files)
        commands = walk.commands_of(TUTORIAL)
        # Only the run that dies as it is told to may end badly.
        said = [self.said(line, -9 if line == "python train.py 13" else 0) for line in commands]
        by = dict(zip(commands, said))
        plan, peek = (next(out for line, out in by.items() if line.startswith(f"tundish {word}"))
                      for word in ("plan", "peek"))  # fmt: skip
        self.assertRegex(plan, r"image +float32\[-1,3,32,32\]\n +label +int64\[-1\]")
        self.assertIn("image            float32[16,3,32,32]", peek)
        first, killed, resumed = (out.splitlines() for line, out in zip(commands, said) if "train.py" in line)
        self.assertEqual(len(first), 31)
        self.assertEqual(first[-1], "right in 100% of the validation pictures")
        self.assertTrue(resumed[0].startswith("step 14: "))
        self.assertEqual(killed + resumed, first)
        self.assertEqual(len(re.findall(r"photos/(?:circle|square)/\d+\.png", said[-1])), 16)


if __name__ == "__main__":
    unittest.main()
