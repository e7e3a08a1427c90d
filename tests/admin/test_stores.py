"""The store that files at URLs come from: its figures, and that it is named when it is the limit."""

import json
import os
import subprocess
import sys
import threading
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import schema  # noqa: E402
from rig_status import StatusRig  # noqa: E402
from store import ACCESS_KEY, REGION, SECRET, Store  # noqa: E402

TUNDISH = os.environ["TUNDISH_PROGRAM"]


class Stores(StatusRig):
    def serve_lines(self, more=""):
        self.store = Store(is_signed=True)
        self.addCleanup(self.store.close)
        for name in [name for name in self.environment if name.startswith("AWS_")]:
            del self.environment[name]
        self.environment.update(AWS_ACCESS_KEY_ID=ACCESS_KEY, AWS_SECRET_ACCESS_KEY=SECRET)
        for name in ("a", "b"):
            self.store.put(f"/bucket/{name}.csv", b"".join(b"%099d\n" % i for i in range(3000)))
        remote = f"remote: {{endpoint: '{self.store.url}', region: {REGION}, part: 64KiB{more}}}"
        self.file = self.pipeline(
            ["csv: {filenames: ['s3://bucket/a.csv', 's3://bucket/b.csv'],"
             " record_defaults: [int64], column_names: [value]}", "repeat", "batch: 16"],
            seed=f"seed: 1\n{remote}", deliver="{epochs: null}")

    def test_what_it_was_asked_is_counted(self):
        self.serve_lines()
        self.store.fail("short", 4, "a.csv")  # some meet requests for no bytes
        self.store.fail("status", 2, "a.csv", (503, "SlowDown", {}))
        self.serve(self.file)
        self.train("--delay-ms", "20")
        self.admin()
        report = self.wait_until(lambda report: report["stores"] and report["stores"][0]["hits"] > 20)
        store = report["stores"][0]
        self.assertEqual(store["store"], "s3://bucket")
        self.assertEqual(store["received_bytes"], 2 * 300000)  # nothing came twice
        self.assertEqual(store["requests"], len(self.store.requests))
        retries = 2 + store["short_retries"]
        self.assertGreaterEqual(store["short_retries"], 1)
        self.assertEqual(store["server_retries"], 2)
        self.assertEqual(store["failures"], 0)
        self.assertGreater(store["wait_seconds"], 0)
        self.assertEqual(sum(store["request_seconds"]["counts"]), store["requests"] - retries)
        description = json.loads(self.ask("/api/v1/openapi.json")[2])
        self.assertEqual(schema.misfits(report, description["components"]["schemas"]["Report"],
                                        description), [])
        self.assertIn('tundish_store_server_retries_total{', self.ask("/metrics")[2])
        printed = subprocess.run([TUNDISH, "status"], env=self.environment, capture_output=True,
                                 text=True, check=True).stdout
        self.assertIn("s3://bucket: ", printed)
        self.assertIn(f"retries: {retries}, failures: 0", " ".join(printed.split()))

    def test_it_is_named_with_the_object_that_does_not_come(self):
        self.serve_lines(", connections: 1")
        event = threading.Event()
        self.addCleanup(event.set)
        self.store.fail("hang", 999, "b.csv", event)
        self.serve(self.file, "--threads", "1")
        self.train()
        self.tells("the server waits for the store s3://bucket, for s3://bucket/b.csv for ",
                   level="waiting", cause="store", culprit="s3://bucket")

    def test_a_part_that_is_far_slower_than_others_is_asked_for_again(self):
        self.serve_lines()
        self.store.put("/bucket/b.csv", b"".join(b"%099d\n" % i for i in range(40000)))
        event = threading.Event()
        self.addCleanup(event.set)
        self.store.slow_after(50, "b.csv", event)
        self.serve(self.file)
        self.train()
        self.admin()
        report = self.wait_until(lambda report: report["stores"] and report["stores"][0]["slow_retries"])
        store = report["stores"][0]
        self.assertEqual([store["stalled_retries"], store["failures"]], [0, 0])
        self.assertFalse(event.is_set())

    def test_the_plan_says_how_it_is_read(self):
        self.serve_lines()
        out = subprocess.run([TUNDISH, "plan", self.file], env=self.environment, capture_output=True,
                             text=True)
        self.assertEqual(out.returncode, 0, out.stderr)
        plan = out.stdout
        self.assertIn("files at URLs: from s3://bucket; parts of 64 KiB, at most 32 requests", plan)
        plan = subprocess.run([TUNDISH, "plan", self.file, "--json"], env=self.environment,
                              capture_output=True, text=True, check=True).stdout
        self.assertEqual(json.loads(plan)["remote"]["stores"], ["s3://bucket"])


if __name__ == "__main__":
    unittest.main()
