"""Suites that run beside the others: what is kept of them."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from testing.beside import Beside  # noqa: E402
from testing.tally import Tally  # noqa: E402


def suite(name):
    if name == "dies":
        os._exit(3)
    if name == "fails":
        raise OSError("gone")
    print(f"{name} prints", flush=True)
    subprocess.run(["sh", "-c", f"echo {name} started a program; echo of errors >&2"], check=True)
    return Tally(passed=2), 7.5


class Kept(unittest.TestCase):
    def run_(self, *names):
        beside = Beside(names, suite)
        beside.begin()
        beside.begin()
        return {name: (str(tally), seconds, printed) for name, tally, seconds, printed in beside.ended(True)}

    def test_what_each_counted_and_printed(self):
        printed = "{0} prints\n{0} started a program\nof errors\n"
        expected = {name: ("2 passed, 0 failed, 0 skipped", 7.5, printed.format(name)) for name in ("one", "two")}
        self.assertEqual(self.run_("one", "two"), expected)

    def test_one_that_raises_has_failed_and_the_next_runs(self):
        kept = self.run_("fails", "one")
        self.assertEqual(kept["fails"], ("0 passed, 1 failed, 0 skipped", None, ""))
        self.assertEqual(kept["one"][0], "2 passed, 0 failed, 0 skipped")

    def test_those_of_a_process_that_died_have_failed(self):
        kept = self.run_("dies", "one")
        self.assertEqual({tally for tally, _, _ in kept.values()}, {"0 passed, 1 failed, 0 skipped"})

    def test_none_has_ended_before_it_began(self):
        beside = Beside(["one"], suite)
        self.assertEqual([*beside.ended(True)], [])
        beside.begin()
        self.assertEqual([name for name, *_ in beside.ended(True)], ["one"])
        self.assertEqual([*beside.ended(True)], [])


if __name__ == "__main__":
    unittest.main()
