"""What the tests of porting share: the data, and TensorFlow with its patches, once in a process."""

import importlib.util
import os
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
BUILD = Path(os.environ.setdefault("TUNDISH_BUILD", str(REPOSITORY / "build")))
PROGRAMS = HERE / "programs"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
for path in (str(HERE), str(BUILD / "sdk" / "python")):
    if path not in sys.path:
        sys.path.insert(0, path)

HAS_TENSORFLOW = importlib.util.find_spec("tensorflow") is not None


class PortTest(unittest.TestCase):
    """Tests in a folder that holds the data of make_data.py."""

    @classmethod
    def setUpClass(cls):
        if not HAS_TENSORFLOW:
            raise unittest.SkipTest("needs tensorflow")
        import make_data

        from tundish.port import porting

        if not hasattr(PortTest, "folder"):
            porting.patch()
            PortTest.kept = tempfile.TemporaryDirectory(prefix="tundish-port-")
            PortTest.folder = Path(PortTest.kept.name)
            make_data.make(PortTest.folder)

    def setUp(self):
        self._before = os.getcwd()
        os.chdir(self.folder)

    def tearDown(self):
        os.chdir(self._before)

    def port(self, target, *words, compares=False):
        from tundish.port import porting

        self.compared_in = self.enterContext(tempfile.TemporaryDirectory(prefix="tundish-port-"))
        return porting.port(
            f"{PROGRAMS / target}", list(words), compared_in=self.compared_in if compares else None
        )

    def check(self, ported, count=20):
        """The Checked of each stream and job."""
        from tundish.port import check

        file = Path(self.compared_in, "pipeline.yaml")
        file.write_text(ported.compared)
        for name, content in ported.files.items():
            file.with_name(name).write_bytes(content)
        return [check.check(each, count) for each in check.questions(ported, file, os.getcwd())]
