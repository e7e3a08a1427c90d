"""Every alert, by promtool: it fires for the sick job and never for the healthy one beside it on the
same host, however far apart the scrapes are and wherever they fall between the evaluations."""

import json
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

RULES = Path(__file__).parents[2] / "admin" / "monitoring" / "alerts.yml"
GRID_S, EVALUATION_S, END_S = 5, 15, 3600
SCRAPES = {"15 s": (15, 0), "30 s between evaluations": (30, 10), "1 min": (60, 25)}
ONSET_S = 1800  # all is well before

# alert: ({series: its value at a second, when sick}, the same when healthy, fires within so many s)
CASES = {}


def case(alert, sick, healthy, within_s):
    CASES.setdefault(alert, []).append((sick, healthy, within_s))


def steady(value):
    return lambda second: value


def growing(a_second):
    return lambda second: a_second * second


def then(before, after):
    """`before` until the onset; from then on `after`, of the seconds since, on top of it."""
    return lambda second: before(second) if second < ONSET_S else before(ONSET_S) + after(second - ONSET_S)


def switched(before, after):
    return lambda second: before if second < ONSET_S else after


def since_onset(second):
    return max(0, second - ONSET_S)


SERVER = 'version="1"'
STREAM = 'stream="train"'
READER = 'stream="train",group="g",replica="1"'
HELPER = 'stream="train",helper="c:29700"'
COLUMN = 'stream="train",column="price"'
VOCABULARY = 'stream="train",vocabulary="C1"'

case("TundishServerGone",
     {f"tundish_up{{{SERVER}}}": switched(1, 0), f"tundish_finished{{{SERVER}}}": steady(0)},
     {f"tundish_up{{{SERVER}}}": steady(1), f"tundish_finished{{{SERVER}}}": steady(0)}, 120)
# One that stops in good order is not gone.
case("TundishServerGone",
     {'tundish_up{version=""}': steady(0)},
     {f"tundish_up{{{SERVER}}}": switched(1, 0), f"tundish_finished{{{SERVER}}}": switched(0, 1)}, 120)
case("TundishServerHung",
     {f"tundish_server_silent_seconds{{{SERVER}}}": since_onset},
     {f"tundish_server_silent_seconds{{{SERVER}}}": lambda second: second % 2}, 180)
case("TundishStreamFailed",
     {f"tundish_stream_failed{{{STREAM}}}": switched(0, 1)},
     {f"tundish_stream_failed{{{STREAM}}}": steady(0)}, 120)
case("TundishGroupLost",
     {f"tundish_stream_groups_lost_total{{{STREAM}}}": switched(0, 1)},
     {f"tundish_stream_groups_lost_total{{{STREAM}}}": steady(0)}, 120)
case("TundishTrainerLost",
     {f"tundish_stream_trainers_lost_total{{{STREAM}}}": switched(2, 3)},
     {f"tundish_stream_trainers_lost_total{{{STREAM}}}": steady(2)}, 120)
case("TundishTrainerStarved",
     {f"tundish_reader_wait_seconds_total{{{READER}}}": then(growing(0.02), growing(0.5)),
      f"tundish_reader_attached{{{READER}}}": steady(1)},
     {f"tundish_reader_wait_seconds_total{{{READER}}}": then(growing(0.02), growing(0.1)),
      f"tundish_reader_attached{{{READER}}}": steady(1)}, 720)
# One that has left waits no more, whatever its last figures say.
case("TundishTrainerStarved",
     {f"tundish_reader_wait_seconds_total{{{READER}}}": then(growing(0), growing(0.9)),
      f"tundish_reader_attached{{{READER}}}": steady(1)},
     {f"tundish_reader_wait_seconds_total{{{READER}}}": then(growing(0), growing(0.9)),
      f"tundish_reader_attached{{{READER}}}": steady(0)}, 720)
STUCK = {f"tundish_reader_silent_seconds{{{READER}}}": since_onset,
         f"tundish_reader_usual_step_seconds{{{READER}}}": steady(0.5),
         f"tundish_reader_attached{{{READER}}}": steady(1),
         f"tundish_reader_released_total{{{READER}}}": steady(10),
         f"tundish_reader_published{{{READER}}}": steady(18)}
case("TundishTrainerStuck", STUCK,
     {**STUCK, f"tundish_reader_usual_step_seconds{{{READER}}}": steady(600),
      f"tundish_reader_silent_seconds{{{READER}}}": lambda second: second % 600}, 300)
case("TundishTrainerStuck", STUCK,
     {**STUCK, f"tundish_reader_published{{{READER}}}": steady(10)}, 300)
case("TundishRowsSkipped",
     {f"tundish_stream_rows_skipped_total{{{STREAM}}}": switched(5, 6)},
     {f"tundish_stream_rows_skipped_total{{{STREAM}}}": steady(5)}, 120)
case("TundishManyRowsSkipped",
     {f"tundish_stream_rows_skipped_total{{{STREAM}}}": then(steady(0), growing(500)),
      f"tundish_stream_rows_total{{{STREAM}}}": growing(500)},
     {f"tundish_stream_rows_skipped_total{{{STREAM}}}": growing(1),
      f"tundish_stream_rows_total{{{STREAM}}}": growing(500)}, 300)
case("TundishOutOfVocabulary",
     {f"tundish_job_vocabulary_lookups_total{{{VOCABULARY}}}": growing(1000),
      f"tundish_job_vocabulary_out_of_vocabulary_total{{{VOCABULARY}}}": then(growing(30), growing(600))},
     {f"tundish_job_vocabulary_lookups_total{{{VOCABULARY}}}": growing(1000),
      f"tundish_job_vocabulary_out_of_vocabulary_total{{{VOCABULARY}}}": growing(600)}, 480)
for such in ("nan", "infinite"):
    other = {"nan": "infinite", "infinite": "nan"}[such]
    case("TundishNaN",
         {f"tundish_job_column_values_total{{{COLUMN}}}": growing(1000),
          f"tundish_job_column_{other}_total{{{COLUMN}}}": steady(0),
          f"tundish_job_column_{such}_total{{{COLUMN}}}": then(growing(30), growing(600))},
         {f"tundish_job_column_values_total{{{COLUMN}}}": growing(1000),
          f"tundish_job_column_{other}_total{{{COLUMN}}}": steady(0),
          f"tundish_job_column_{such}_total{{{COLUMN}}}": growing(600)}, 480)
case("TundishProcessorsShort",
     {"tundish_server_throttled_seconds_total": then(growing(0), growing(0.5)),
      "tundish_server_run_delay_seconds_total": growing(0.01),
      "tundish_server_cpu_seconds_total": growing(1)},
     {"tundish_server_throttled_seconds_total": steady(0),
      "tundish_server_run_delay_seconds_total": growing(0.3),
      "tundish_server_cpu_seconds_total": growing(1)}, 720)
case("TundishProcessorsShort",
     {"tundish_server_throttled_seconds_total": steady(0),
      "tundish_server_run_delay_seconds_total": then(growing(0.01), growing(2)),
      "tundish_server_cpu_seconds_total": growing(0.2)},
     {"tundish_server_throttled_seconds_total": steady(0),
      "tundish_server_run_delay_seconds_total": growing(0.2),
      "tundish_server_cpu_seconds_total": growing(0.1)}, 720)
case("TundishMemoryShort",
     {"tundish_server_memory_stalled_seconds_total": then(growing(0.01), growing(0.4))},
     {"tundish_server_memory_stalled_seconds_total": growing(0.1)}, 720)
case("TundishDiskFull",
     {"tundish_server_disk_full_total": switched(0, 3)},
     {"tundish_server_disk_full_total": steady(0)}, 120)
case("TundishNodeLost",
     {"tundish_link_failed": switched(0, 1)}, {"tundish_link_failed": steady(0)}, 120)
case("TundishHelperBarred",
     {f"tundish_job_helper_barred{{{HELPER}}}": switched(0, 1)},
     {f"tundish_job_helper_barred{{{HELPER}}}": steady(0)}, 120)
case("TundishHelperLost",
     {f"tundish_job_helper_connections{{{HELPER}}}": switched(4, 0),
      f"tundish_job_helper_lost_total{{{HELPER}}}": switched(0, 1)},
     {f"tundish_job_helper_connections{{{HELPER}}}": steady(4), f"tundish_job_helper_lost_total{{{HELPER}}}": steady(1)},
     480)
# One that was never called, since no trainer waited, is not lost.
case("TundishHelperLost",
     {f"tundish_job_helper_connections{{{HELPER}}}": switched(4, 0),
      f"tundish_job_helper_lost_total{{{HELPER}}}": switched(0, 1)},
     {f"tundish_job_helper_connections{{{HELPER}}}": steady(0), f"tundish_job_helper_lost_total{{{HELPER}}}": steady(0)},
     480)
# One that is not used any more has an alert of its own.
case("TundishHelperLost",
     {f"tundish_job_helper_connections{{{HELPER}}}": switched(4, 0),
      f"tundish_job_helper_lost_total{{{HELPER}}}": switched(0, 1),
      f"tundish_job_helper_barred{{{HELPER}}}": steady(0)},
     {f"tundish_job_helper_connections{{{HELPER}}}": steady(0),
      f"tundish_job_helper_lost_total{{{HELPER}}}": steady(1),
      f"tundish_job_helper_barred{{{HELPER}}}": steady(1)},
     480)
case("TundishNodeSlow",
     {"tundish_node_slowness_ratio": switched(1, 2.5), "tundish_node_wait_ratio": switched(0.01, 0.4)},
     {"tundish_node_slowness_ratio": steady(1.2), "tundish_node_wait_ratio": steady(0.4)}, 720)
# One that is slow and fast enough holds nobody up.
case("TundishNodeSlow",
     {"tundish_node_slowness_ratio": steady(2.5), "tundish_node_wait_ratio": switched(0.01, 0.4)},
     {"tundish_node_slowness_ratio": steady(2.5), "tundish_node_wait_ratio": steady(0.03)}, 720)
case("TundishStorageSlow",
     {"tundish_node_file_wait_ratio": switched(0.1, 0.9), "tundish_node_wait_ratio": switched(0.01, 0.6)},
     {"tundish_node_file_wait_ratio": steady(0.3), "tundish_node_wait_ratio": steady(0.6)}, 720)
# Files that are waited for ahead of time are none that trainers wait for.
case("TundishStorageSlow",
     {"tundish_node_file_wait_ratio": steady(0.9), "tundish_node_wait_ratio": switched(0.01, 0.6)},
     {"tundish_node_file_wait_ratio": steady(0.9), "tundish_node_wait_ratio": steady(0.02)}, 720)
STORE = 'store="s3://bucket"'
case("TundishStoreThrottles",
     {f"tundish_job_store_requests_total{{{STORE}}}": growing(100),
      f"tundish_job_store_server_retries_total{{{STORE}}}": then(growing(0), growing(20))},
     {f"tundish_job_store_requests_total{{{STORE}}}": growing(100),
      f"tundish_job_store_server_retries_total{{{STORE}}}": growing(1)}, 720)


def labelled(series, job):
    """Two jobs on one host have the same host and rank; their admins differ by instance and job."""
    name, _, labels = series.rstrip("}").partition("{")
    own = f'host="a",rank="0",instance="a:{len(job)}",job="{job}"'
    return f"{name}{{{own}{',' if labels else ''}{labels}}}"


def scraped(value_at, interval_s, offset_s):
    values = []
    for second in range(0, END_S, GRID_S):
        due = second >= offset_s and (second - offset_s) % interval_s == 0
        values.append(f"{value_at(second):.12g}" if due else "_")
    return " ".join(values)


def input_series(jobs, interval_s, offset_s):
    return [{"series": labelled(series, job), "values": scraped(value_at, interval_s, offset_s)}
            for job, figures in jobs.items() for series, value_at in figures.items()]


def firing_test(alert, at_s, jobs):
    """Exactly those jobs' alerts fire at that second."""
    query = f'count by (job) (ALERTS{{alertname="{alert}",alertstate="firing"}})'
    samples = [{"labels": f'{{job="{job}"}}', "value": 1} for job in jobs]
    return {"expr": query, "eval_time": f"{at_s}s", "exp_samples": samples}


@unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
class Alerts(unittest.TestCase):
    def check(self, tests):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "test.yml"  # JSON is YAML
            path.write_text(json.dumps({
                "rule_files": [str(RULES)], "evaluation_interval": f"{EVALUATION_S}s", "tests": tests}))
            out = subprocess.run(["promtool", "test", "rules", str(path)],
                                 capture_output=True, text=True)
        self.assertEqual(out.returncode, 0, out.stdout + out.stderr)

    def test_each_has_a_case(self):
        alerts = re.findall(r"- alert: (\w+)", RULES.read_text())
        self.assertEqual(sorted(alerts), sorted(CASES))

    def test_they_fire_for_sick_jobs_alone(self):
        for alert, cases in CASES.items():
            tests = []
            for sick, healthy, within_s in cases:
                is_sick_before = all(value_at(0) == value_at(END_S) for value_at in sick.values())
                for name, scrape in SCRAPES.items():
                    expected = [firing_test(alert, ONSET_S + within_s, ["sick"])]
                    if not is_sick_before:
                        expected.insert(0, firing_test(alert, ONSET_S - EVALUATION_S, []))
                    tests.append({
                        "name": f"{alert}, scraped every {name}", "interval": f"{GRID_S}s",
                        "input_series": input_series({"sick": sick, "healthy": healthy}, *scrape),
                        "promql_expr_test": expected})
            with self.subTest(alert):
                self.check(tests)


if __name__ == "__main__":
    unittest.main()
