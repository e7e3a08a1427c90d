"""sdk/python/porting.md: its program is ported as it says."""

import contextlib
import io
import re
import unittest
from pathlib import Path

import rig

TEXT = (rig.REPOSITORY / "sdk" / "python" / "porting.md").read_text()


class Page(rig.PortTest):
    def test_the_program_gives_the_file_and_the_comparison(self):
        from tundish.port import __main__ as command
        from tundish.port import porting

        Path("input.py").write_text(_block("python"))
        said = io.StringIO()
        with contextlib.redirect_stderr(said), _without(porting, "patch"):
            words = _block("sh").split()[2:]
            self.assertEqual(command.main(words), command.COMPLETE)
        self.assertEqual(Path("titanic.yaml").read_text(), _block("yaml"))
        # On some machines the last bit of log1p differs, and the line goes on.
        self.assertTrue(said.getvalue().startswith(_block("").strip()), said.getvalue())


def _block(language):
    """The first block of this language."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    return next(text for found, text in blocks if found == language)


@contextlib.contextmanager
def _without(module, name):
    """What is done once in a process was done."""
    plain = getattr(module, name)
    setattr(module, name, lambda: None)
    try:
        yield
    finally:
        setattr(module, name, plain)


if __name__ == "__main__":
    unittest.main()
