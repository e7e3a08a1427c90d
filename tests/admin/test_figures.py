"""What a server counts, by a real one's figures: each in its place and true."""

import json
import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from rig_admin import PLAIN, AdminRig, has_readers  # noqa: E402
from rig import TUNDISH  # noqa: E402

MONITORING = Path(__file__).parents[2] / "admin" / "monitoring"

# 800 rows; a text in every eighth is no number.
BAD_ROWS = [
    'from_tensor_slices: {line: ["1,a", "2,b", "3,c", "x,d", "5,e", "6,f", "7,g", "8,h"]}',
    "repeat: 100",
    "shuffle: {buffer_size: 50, seed: 1}",
    "decode_csv: {record_defaults: [int64], column_names: [value], select_cols: [0]}",
    "map: {value: value + 1}",
    "batch: 64",
]
LEFT = 700  # of 800


class Figures(AdminRig):
    """All rows are delivered, and the reader holds its last batch."""

    def setUp(self):
        super().setUp()
        self.file = self.pipeline(BAD_ROWS, deliver="{on_error: skip, epochs: 1}")

    def read_all(self):
        self.serve(self.file)
        self.admin()
        self.train("--batches", "13", "--hold")
        return self.wait_until(lambda report: report["streams"][0]["readers"]
                               and report["streams"][0]["readers"][0]["taken"] == 13
                               and report["streams"][0]["rows"] == LEFT)["streams"][0]

    def stages(self, stream, part):
        return {stage["stage"]: stage for stage in stream["stages"] if stage["part"] == part}

    def test_of_stages(self):
        stream = self.read_all()
        content, order = self.stages(stream, "content"), self.stages(stream, "order")
        self.assertEqual(content["decode_csv"]["rows"], 800)
        self.assertEqual({name: stage["skipped"] for name, stage in content.items() if stage["skipped"]},
                         {"decode_csv": 100})
        self.assertEqual(stream["rows_skipped"], 100)
        self.assertEqual(content["map"]["output_bytes"], LEFT * 8)
        self.assertEqual(content["from_tensor_slices"]["output_bytes"], 800 * 3)
        self.assertEqual({stage["queued"] for stage in content.values()}, {0})
        self.assertEqual(content["decode_csv"]["line"], "8")
        for stage in content.values():
            self.assertEqual(sum(stage["call_seconds"]["counts"]), stage["calls"], stage["stage"])
            self.assertAlmostEqual(stage["call_seconds"]["sum"], stage["busy_seconds"], 6)
        self.assertEqual(order["repeat"]["rows"], 800)
        self.assertEqual((order["shuffle"]["rows"], order["shuffle"]["room"]), (800, 50))
        self.assertEqual(order["shuffle"]["queued"], 0)  # the epoch is over

    def test_of_lanes_and_those_who_read(self):
        stream = self.read_all()
        lane, reader, group = stream["lanes"][0], stream["readers"][0], stream["groups"][0]
        self.assertEqual((lane["taken"], lane["occupied"]), (13, 1))
        self.assertGreater(lane["segments_bytes"], lane["arena_bytes"])
        self.assertEqual(sum(lane["slot_wait_seconds"]["counts"]), lane["published"])
        self.assertEqual((group["group"], group["attached"]), ("default", 1))
        self.assertEqual(group["lag"], lane["published"] - 13)
        self.assertEqual(stream["lag"], group["lag"])
        self.assertEqual((group["epoch"], group["step"]), (0, 13))
        self.assertEqual(sum(reader["next_wait_seconds"]["counts"]), 13)
        self.assertLessEqual(reader["next_wait_seconds"]["sum"], reader["wait_seconds"])
        codecs = {one["codec"]: one for one in stream["encodings"]}
        for what in ("decoded_bytes", "stored_bytes"):
            self.assertEqual(sum(one[what] for one in codecs.values()), lane[what])

    def test_are_shown_where_people_look(self):
        self.read_all()
        metrics = self.ask("/metrics")[2]
        for pattern in (r'stage_output_bytes_total\{.*stage="map".*\} 5600$',
                        r'stage_skipped_total\{.*stage="decode_csv".*part="content"\} 100$',
                        r'stage_queued\{.*stage="shuffle"',
                        r'stage_call_seconds_bucket\{.*stage="map".*le="\+Inf"\} \d+$',
                        r'reader_next_wait_seconds_count\{.*\} 13$', r'lane_occupied\{.*\} 1$',
                        r'lane_slot_wait_seconds_sum\{', r'encoding_stored_bytes_total\{.*codec="raw"',
                        r'group_lag\{.*group="default"', r'server_unseen_sets_total\{.*\} 0$',
                        r'server_resident_memory_bytes\{', r'server_cpu_seconds_total\{'):
            self.assertRegex(metrics, re.compile(f"^tundish_{pattern}", re.MULTILINE))


class Trace(AdminRig):
    def test_shows_stages_lanes_and_waits(self):
        self.serve(self.pipeline(PLAIN, deliver="{epochs: null}"))
        self.admin()
        self.train("--delay-ms", "1")
        self.wait_until(has_readers(1))
        out = subprocess.run([TUNDISH, "trace", "--seconds", "1"], env=self.environment,
                             capture_output=True, text=True)
        self.assertEqual(out.returncode, 0, out.stderr)
        events = json.loads(out.stdout)["traceEvents"]
        kinds = {kind: [event for event in events if event["ph"] == kind] for kind in "MXCst"}
        self.assertEqual(len(events), sum(map(len, kinds.values())))
        self.assertTrue(all(event["ts"] >= 0 for event in events if event["ph"] != "M"))
        self.assertIn("train: order", {event["args"]["name"] for event in kinds["M"]})
        self.assertLessEqual({"range", "batch", "part", "deal a step"},
                             {event["name"] for event in kinds["X"]})
        lanes = [event for event in kinds["C"] if event["name"] == "train: default replica 0 slots"]
        self.assertEqual(set(lanes[0]["args"]), {"ready", "with the trainer"})
        self.assertIn("train: default replica 0 waits", {event["name"] for event in kinds["C"]})
        self.assertEqual({event["id"] for event in kinds["t"]},
                         {event["args"]["step"] for event in kinds["X"] if event["name"] == "part"})
        self.assertEqual(overlaps(kinds["X"]), [])


def overlaps(events):
    """Events of a thread that neither follow nor contain each other."""
    found = []
    for thread in {event["tid"] for event in events}:
        around = []
        mine = [event for event in events if event["tid"] == thread]
        for event in sorted(mine, key=lambda event: (event["ts"], -event["dur"])):
            end = event["ts"] + event["dur"]
            while around and around[-1] <= event["ts"] + 0.002:
                around.pop()
            if around and end > around[-1] + 0.002:
                found.append(event)
            around.append(end)
    return found


class Monitoring(AdminRig):
    """The board and the alerts ask for figures that there are."""

    def test_names_are_those_of_metrics(self):
        self.serve(self.pipeline(PLAIN, deliver="{epochs: null}"))
        self.admin()
        self.train("--delay-ms", "5")
        self.wait_until(lambda report: report["streams"] and report["streams"][0]["readers"])
        offered = set(re.findall(r"^(tundish_\w+)[{ ]", self.ask("/metrics")[2], re.MULTILINE))
        description = json.loads(self.ask("/api/v1/openapi.json")[2])["components"]["schemas"]
        for kind in ("Vocabulary", "Link", "Store", "Helper"):  # of which this job has none
            for name, about in description[kind]["properties"].items():
                total = "_total" if f"{name.removesuffix('_seconds').removesuffix('_bytes')}_rate" in \
                    description[kind]["properties"] else ""
                bucket = "_bucket" if "Histogram" in json.dumps(about) else ""
                offered |= {f"tundish_{scope}{kind.lower()}_{name}{total}{bucket}" for scope in ("", "job_")}
        for file in ("alerts.yml", "grafana.json"):
            text = (MONITORING / file).read_text()
            queries = re.findall(r'"?expr"?: (.*?)\n\s*(?:"?\w+"?:|[]}])', text, re.DOTALL)
            asked = set(re.findall(r"\btundish_\w+", "\n".join(queries)))
            self.assertTrue(asked)
            self.assertEqual(asked - offered - {"tundish_up"}, set(), file)

    def test_the_board_has_every_histogram(self):
        """As a heatmap, and as quantiles; of all nodes together, so that it has them at any size."""
        kinds = (Path(__file__).parents[2] / "sdk" / "shm" / "stats.def").read_text()
        wanted = {f"tundish_job_{kind}_{field}_seconds_bucket"
                  for kind, field in re.findall(r"STATS_FIELD\((\w+), (\w+), HISTOGRAM", kinds)}
        self.assertGreater(len(wanted), 5)
        panels = json.loads((MONITORING / "grafana.json").read_text())["panels"]
        for kind, word in (("heatmap", "increase("), ("timeseries", "histogram_quantile(0.99")):
            asked = {name for panel in panels if panel["type"] == kind for target in panel["targets"]
                     if word in target["expr"] for name in re.findall(r"\btundish_\w+_bucket", target["expr"])}
            self.assertEqual(asked, wanted, kind)


if __name__ == "__main__":
    unittest.main()
