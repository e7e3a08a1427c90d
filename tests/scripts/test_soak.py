"""scripts/soak gives each slice its turn, adds up what they count, and keeps what failed."""

import json
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TORTURE = "echo 12 killed: 12 servers; echo 340 rows seen; echo $2"
SESSIONS = "echo 7 runs from seed 99; echo $SECONDS"
FUZZER = "echo $FUZZ_SEED $3 >>$3/given; echo stat::number_of_executed_units: 50"
BROKEN = "echo SEED=5: a row is lost; exit 134"


class Soak(unittest.TestCase):
    """In a tree whose programs are stand-ins."""

    def setUp(self):
        self.root = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name, script in (
            ("scripts/build", "true"),
            ("scripts/torture", TORTURE),
            ("build/tests/simulation/simulation_test_session", SESSIONS),
            ("build/tests/simulation/simulation_test_nodes", SESSIONS),
            ("tests/fuzz/run_target", FUZZER),
        ):
            self.put(name, script)
        (self.root / "tests/fuzz/fuzz_csv.c").touch()
        shutil.copy(ROOT / "scripts" / "soak", self.root / "scripts" / "soak")

    def put(self, name, script):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def soak(self, *words):
        command = [self.root / "scripts" / "soak", *words]
        return subprocess.run(command, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}, timeout=300)

    def summary(self):
        return json.loads((self.root / "soak" / "summary.json").read_text())

    def run_once(self, *names):
        """So short that each slice has one turn at most."""
        for name in names:
            self.soak("--hours", "1e-7", name)

    def test_adds_up_over_runs(self):
        self.run_once("torture", "torture", "sessions", "fuzz/csv", "fuzz/csv")
        done = self.soak("--summary")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.summary()["torture"]["counts"], {"kills": 24, "rows": 680})
        self.assertEqual(self.summary()["fuzz/csv"]["counts"], {"inputs": 100})
        self.assertRegex(done.stdout, r"sessions +0\.00 h, +0\.00 CPU-h: 7 runs, 0 slices failed")

    def test_a_fuzzer_goes_on_with_another_seed_from_what_it_kept(self):
        self.run_once("fuzz/csv", "fuzz/csv")
        kept = self.root.resolve() / "soak" / "corpus" / "csv"
        self.assertEqual((kept / "given").read_text(), f"2 {kept}\n3 {kept}\n")

    def test_the_one_with_least_time_is_next(self):
        (self.root / "soak").mkdir()
        one = {"slices": 1, "seconds": 9, "failures": 0, "counts": {}}
        (self.root / "soak" / "summary.json").write_text(json.dumps({"torture": one, "sessions": one}))
        self.soak("--hours", "1e-7", "torture", "sessions", "nodes")
        self.assertEqual(self.summary()["nodes"]["counts"], {"runs": 7})
        self.assertEqual(self.summary()["torture"], one)

    def test_a_fuzzer_that_fails_waits_for_its_turn_and_its_input_is_set_aside(self):
        self.put("tests/fuzz/run_target", "echo hostile >$3/crash-1; echo kept >$3/kept; exit 1")
        (self.root / "soak").mkdir()
        one = {"slices": 1, "seconds": 1, "failures": 0, "counts": {}}
        (self.root / "soak" / "summary.json").write_text(json.dumps({"sessions": one}))
        for _ in range(2):  # a second each, which the fuzzer does not take
            self.assertEqual(self.soak("--hours", "1e-7", "fuzz/csv", "sessions").returncode, 1)
        failures = self.root / "soak" / "failures"
        self.assertEqual((failures / "fuzz-csv-crash-1").read_text(), "hostile\n")
        self.assertEqual([path.name for path in (self.root / "soak/corpus/csv").iterdir()], ["kept"])
        slices = {name: one["slices"] for name, one in self.summary().items()}
        self.assertEqual(slices, {"fuzz/csv": 1, "sessions": 2})

    def test_what_fails_is_kept_with_its_command_and_is_not_forgotten(self):
        self.put("build/tests/simulation/simulation_test_session", BROKEN)
        self.assertEqual(self.soak("--hours", "1e-7", "sessions").returncode, 1)
        log = (self.root / "soak" / "failures" / "sessions-1.log").read_text()
        self.assertRegex(log, r"\ASECONDS=\d+ .*simulation_test_session\nexit status 134\n")
        self.assertIn("SEED=5: a row is lost", log)
        self.put("build/tests/simulation/simulation_test_session", SESSIONS)
        self.assertEqual(self.soak("--hours", "1e-7", "sessions").returncode, 1)

    def test_an_unknown_name_is_refused(self):
        done = self.soak("fuzz/cvs")
        self.assertEqual(done.returncode, 2)
        self.assertIn("nothing to run is called fuzz/cvs", done.stderr)


if __name__ == "__main__":
    unittest.main()
