"""The whole runner, against a fake tundish that prints what each test wants."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RUNNER = Path(__file__).resolve().parents[1] / "run"
FAKE = Path(__file__).resolve().with_name("fake_tundish.py")


def values(*numbers):
    return {"x": {"dtype": "int64", "shape": [len(numbers)], "values": list(numbers)}}


def record(*workers, **more):
    return {"name": "c", "num_workers": len(workers), "workers": list(workers), **more}


def worker(*replicas, end="end"):
    return {"replicas": list(replicas), "end": end}


def peeked(number, *replicas, end="end", epoch=0):
    lines = [
        {"worker": number, "replica": replica, "epoch": epoch, "step": step, "columns": columns}
        for replica, steps in enumerate(replicas)
        for step, columns in enumerate(steps)
    ]
    return lines + [{"worker": number, "end": end}]


class Runner(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        (self.folder / "cases" / "data").mkdir(parents=True)
        program = self.folder / "build" / "server" / "tundish"
        program.parent.mkdir(parents=True)
        program.symlink_to(FAKE)

    def put(self, name, recorded, delivered=None, **files):
        path = self.folder / "cases" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.touch()
        path.with_suffix(".json").write_text(json.dumps(recorded), encoding="utf-8")
        if delivered is not None:
            text = "".join(json.dumps(line) + "\n" for line in delivered)
            path.with_suffix(".out").write_text(text, encoding="utf-8")
        for suffix, text in files.items():
            path.with_suffix(f".{suffix}").write_text(text, encoding="utf-8")
        return path

    def run_cases(self, *options):
        environment = dict(os.environ, TUNDISH_BUILD=str(self.folder / "build"))
        done = subprocess.run(
            [sys.executable, RUNNER, self.folder / "cases", *options],
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def assert_passes(self):
        self.assertEqual(self.run_cases(), (0, "1 passed, 0 failed, 0 skipped\n"))

    def assert_fails(self, *words):
        status, out = self.run_cases()
        self.assertEqual(status, 1, out)
        self.assertTrue(out.endswith("0 passed, 1 failed, 0 skipped\n"), out)
        for word in words:
            self.assertIn(word, out)

    def test_a_case_delivered_as_recorded_passes(self):
        spec = {"x": {"dtype": "int64", "shape": [None]}}
        recorded = record(worker([values(1), values(2)]), element_spec=spec)
        self.put("order/c", recorded, [{"element_spec": spec}, *peeked(0, [values(1), values(2)])])
        self.assert_passes()

    def test_a_wrong_value_fails_and_is_named(self):
        self.put("order/c", record(worker([values(1), values(2)])), peeked(0, [values(1), values(3)]))
        self.assert_fails("order/c", "step 1: x: 1 of 1 values differ: [0] is 3 instead of 2")

    def test_a_missing_step_and_a_step_too_many_fail(self):
        self.put("order/c", record(worker([values(1), values(2)])), peeked(0, [values(1)]))
        self.assert_fails("there are 1 steps instead of 2")
        self.put("order/c", record(worker([values(1)])), peeked(0, [values(1), values(2)]))
        self.assert_fails("there are 2 steps instead of 1")

    def test_replicas_and_workers_are_kept_apart(self):
        recorded = record(worker([values(1)], [values(2)]), worker([values(3)], [values(4)]))
        right = peeked(0, [values(1)], [values(2)]) + peeked(1, [values(3)], [values(4)])
        self.put("distribute/c", recorded, right)
        self.assert_passes()
        wrong = peeked(0, [values(1)], [values(2)]) + peeked(1, [values(4)], [values(3)])
        self.put("distribute/c", recorded, wrong)
        self.assert_fails("worker 1, replica 0: step 0", "worker 1, replica 1: step 0")

    def test_a_worker_or_replica_nobody_recorded_fails(self):
        self.put("distribute/c", record(worker([values(1)]), worker([])), peeked(0, [values(1)]))
        self.assert_fails("worker 1: nothing was delivered")
        self.put("distribute/c", record(worker([values(1)])), peeked(0, [values(1)], [values(1)]))
        self.assert_fails("replica 1 too many")

    def test_epochs_end_where_they_were_recorded_to_end(self):
        recorded = record(worker([values(1), "epoch_end", values(2)]), epochs=2)
        second = peeked(0, [values(2)], epoch=1)
        first = peeked(0, [values(1)])[:-1] + [{"worker": 0, "epoch_end": 0}]
        path = self.put("order/c", recorded, first + second)
        self.assert_passes()
        self.assertIn("--epochs 2", path.with_suffix(".calls").read_text())
        self.put("order/c", recorded, peeked(0, [values(1), values(2)]))
        self.assert_fails("epoch 0: there are 2 steps instead of 1", "epoch 1")

    def test_the_end_is_compared(self):
        recorded = record(worker([values(1)], end="max_steps"), max_steps=1)
        path = self.put("order/c", recorded, peeked(0, [values(1)]))
        self.assert_fails('the end is "end" instead of "max_steps"')
        self.assertIn("--steps 1", path.with_suffix(".calls").read_text())

    def test_a_recorded_error_needs_an_error_with_its_words(self):
        error = {"error": "DataLoss", "message_has": ["46", "a.tfrecord"]}
        recorded = record(worker([values(1)], end=error))
        said = {"error": "TUNDISH_E_DATA", "message": "data/a.tfrecord: damaged at offset 46"}
        self.put("source/c", recorded, peeked(0, [values(1)], end=said))
        self.assert_passes()
        self.put("source/c", recorded, peeked(0, [values(1)], end=dict(said, message="damaged")))
        self.assert_fails("the message lacks ['46', 'a.tfrecord']: 'damaged'")
        self.put("source/c", recorded, peeked(0, [values(1)]))
        self.assert_fails('the end is "end" instead of an error')

    def test_the_steps_before_an_error_must_match(self):
        recorded = record(worker([values(1)], end={"error": "DataLoss", "message_has": []}))
        end = {"error": "TUNDISH_E_DATA", "message": "damaged"}
        self.put("source/c", recorded, peeked(0, [], end=end))
        self.assert_fails("there are 0 steps instead of 1")

    def test_a_refusal_needs_its_words(self):
        recorded = record(worker([], end={"refused": True, "message_has": ["batch"]}))
        refused = {"refused": True, "errors": ["c.yaml:3:5: needs another stage"]}
        self.put("order/c", recorded, [{"end": refused}])
        self.assert_fails("['batch']")
        self.put("order/c", recorded, [{"end": dict(refused, errors=["c.yaml:3:5: batch it"])}])
        self.assert_passes()
        self.put("order/c", recorded, peeked(0, []))
        self.assert_fails("should be refused, but it ran")

    def test_an_error_before_the_first_step_may_be_a_refusal(self):
        refused = [{"end": {"refused": True, "errors": ["c.yaml:3:5: step must not be 0"]}}]
        error = {"error": "InvalidArgument", "message_has": ["step"]}
        self.put("order/c", record(worker([], end=error)), refused)
        self.assert_passes()
        self.put("order/c", record(worker([values(1)], end=error)), refused)
        self.assert_fails("the pipeline file was refused")

    def test_what_tundish_does_on_purpose_replaces_the_record(self):
        purpose = {"why": "because", "workers": [worker([values(2)])]}
        self.put("order/c", record(worker([values(1)]), tundish=purpose), peeked(0, [values(2)]))
        self.assert_passes()

    def test_element_spec_is_compared_with_its_order(self):
        spec = {"a": {"dtype": "int64", "shape": []}, "b": {"dtype": "int64", "shape": []}}
        recorded = record(worker([]), element_spec=spec)
        backwards = dict(reversed(spec.items()))
        self.put("order/c", recorded, [{"element_spec": backwards}, *peeked(0, [])])
        self.assert_fails("['b', 'a'] instead of ['a', 'b']")
        other = dict(spec, b={"dtype": "int64", "shape": [None]})
        self.put("order/c", recorded, [{"element_spec": other}, *peeked(0, [])])
        self.assert_fails("element_spec of b: shape is [None] instead of []")

    def test_a_stage_left_out_of_the_build_is_skipped(self):
        refused = {"refused": True, "errors": ["c.yaml:4:9: stage pca is not in this build"]}
        self.put("content/c", record(worker([values(1)])), [{"end": refused}])
        status, out = self.run_cases("-v")
        self.assertEqual(status, 0)
        self.assertIn("skipped content/c\n", out)
        self.assertIn("1 skipped: stage pca is not in this build\n", out)
        self.assertTrue(out.endswith("0 passed, 0 failed, 1 skipped\n"))

    def test_artifacts_are_learned_first_and_compared(self):
        table = {"dtype": "float32", "shape": [], "values": [2.0]}
        artifacts = {"x.vocabulary.txt": "b\na\n", "x.mean": table}
        recorded = record(worker([]), artifacts=artifacts, tolerance={"x.mean": 1e-3})
        path = self.put("analyze/c", recorded, peeked(0, []))
        learned = path.with_suffix(".learned")
        learned.mkdir()
        (learned / "x.vocabulary.txt").write_text("b\na\n")
        (learned / "x.mean").write_text(json.dumps(dict(table, values=[2.001])))
        self.assert_passes()
        (learned / "x.vocabulary.txt").write_text("b\nc\n")
        (learned / "x.mean").unlink()
        self.assert_fails("line 2 is b'c\\n' instead of b'a\\n'", "x.mean: was not written")

    def test_without_the_analyze_command_such_cases_are_skipped(self):
        self.put("analyze/c", record(worker([])), peeked(0, []))
        status, out = self.run_cases()
        self.assertEqual(status, 0)
        self.assertTrue(out.endswith("0 passed, 0 failed, 1 skipped\n"), out)

    def test_a_crash_fails_and_says_how(self):
        self.put("order/c", record(worker([])), sh="kill -SEGV $PPID")
        self.assert_fails("killed by SIGSEGV")

    def test_a_sanitizer_report_fails(self):
        script = "echo 'ERROR: AddressSanitizer: heap-use-after-free' >&2"
        self.put("order/c", record(worker([])), sh=script)
        self.assert_fails("a sanitizer spoke", "heap-use-after-free")

    def test_a_run_without_end_is_killed(self):
        self.put("order/c", record(worker([])), sh="sleep 1000")
        status, out = self.run_cases("--timeout", "0.5")
        self.assertEqual(status, 1)
        self.assertIn("no end after 0.5 s", out)

    def test_silence_and_gibberish_fail(self):
        self.put("order/c", record(worker([])), [])
        self.assert_fails("printed no end")
        self.put("order/c", record(worker([])), sh="echo '{'")
        self.assert_fails("unreadable line")

    def test_an_unreadable_record_fails(self):
        path = self.put("order/c", record(worker([])), peeked(0, []))
        path.with_suffix(".json").write_text("{")
        self.assert_fails("c.json")

    def test_paths_start_at_the_nearest_folder_with_data(self):
        (self.folder / "cases" / "more" / "data").mkdir(parents=True)
        path = self.put("more/c", record(worker([])), peeked(0, []))
        self.assert_passes()
        root = self.folder.resolve() / "cases" / "more"
        self.assertIn(f"--root {root} ", path.with_suffix(".calls").read_text())

    def test_each_run_of_a_case_has_an_empty_folder_of_its_own(self):
        end = shlex.quote(json.dumps(peeked(0, [])[0]))
        said = f"""
            echo "$CASE_FOLDER" >>"${{0%.sh}}.folders"
            [ -z "$(ls -A "$CASE_FOLDER")" ] && touch "$CASE_FOLDER/left" && echo {end}"""
        paths = [self.put(f"order/{name}", record(worker([])), sh=said) for name in "cd"]
        for _ in range(2):
            self.assertEqual(self.run_cases(), (0, "2 passed, 0 failed, 0 skipped\n"))
        folders = [f for path in paths for f in path.with_suffix(".folders").read_text().split()]
        self.assertEqual(len(set(folders)), 4, folders)
        self.assertEqual([folder for folder in folders if os.path.exists(folder)], [])

    def test_learning_and_serving_of_a_run_share_its_folder(self):
        end = shlex.quote(json.dumps(peeked(0, [])[0]))
        said = f'echo "$CASE_FOLDER" >>"${{0%.sh}}.folders"; echo {end}'
        path = self.put("analyze/c", record(worker([])), sh=said)
        self.assert_passes()
        learned, served = path.with_suffix(".folders").read_text().split()
        self.assertEqual(learned, served)

    def test_a_substring_chooses_cases(self):
        self.put("order/c", record(worker([])), peeked(0, []))
        self.put("order/d", record(worker([])), sh="exit 1")
        self.assertEqual(self.run_cases("-k", "r/c"), (0, "1 passed, 0 failed, 0 skipped\n"))


if __name__ == "__main__":
    unittest.main()
