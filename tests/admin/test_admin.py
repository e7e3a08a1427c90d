"""tundish-admin beside a real server and real trainers."""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest
import urllib.parse
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import schema  # noqa: E402
from rig_admin import BEARER, LOOKED_UP, PLAIN, TOKEN, AdminRig, has_readers  # noqa: E402
from rig import DEADLINE_S, TUNDISH, batches, stop  # noqa: E402


class Routes(AdminRig):
    def test_answers_for_people_programs_and_prometheus(self):
        self.serve(self.pipeline(PLAIN, deliver="{epochs: null}"))
        self.train("--delay-ms", "5")
        self.admin()
        report = self.wait_until(lambda report: report["streams"][0]["rows_rate"] > 0)
        self.assertEqual(report["server"]["state"], "serving")
        self.wait_until(lambda report: report["window_seconds"] > 9)  # as the manual has it
        self.assertEqual(report["streams"][0]["stream"], "train")
        self.assertEqual(self.ask("/healthz")[::2], (200, "ok\n"))
        self.assertEqual(self.ask("/readyz")[::2], (200, "ok\n"))
        self.assertIn("shuffle: {buffer_size: 1000}", self.ask("/api/v1/pipeline")[2])
        plans = json.loads(self.ask("/api/v1/plans")[2])
        self.assertEqual(plans["train"]["root"]["stage"], "batch")
        history = json.loads(self.ask("/api/v1/history")[2])
        self.assertTrue(any(s["what"] == "wait" for s in history["series"]))
        self.assertIn("<!DOCTYPE html>", self.ask("/")[2])

    def check_answers(self):
        """Every route answers as it is described; returns the statuses by path."""
        description = json.loads(self.ask("/api/v1/openapi.json")[2])
        statuses = {}
        for path, methods in description["paths"].items():
            for method, operation in methods.items():
                asked = path.replace("{level}", "notice").replace("{rank}", "0")
                headers = [("Content-Length", "0"), BEARER] if method == "post" else []
                status, headers, body = self.ask(asked, method.upper(), headers)
                statuses[asked] = status
                answers = operation["responses"]
                answer = answers.get(str(status), answers.get("default"))
                self.assertIsNotNone(answer, f"{path}: {status} is not described")
                if "$ref" in answer:
                    answer = schema.resolve(answer["$ref"], description)
                kind = headers["Content-Type"].split(";")[0]
                self.assertIn(kind, answer["content"], path)
                value = json.loads(body) if kind == "application/json" else body
                wanted = answer["content"][kind]["schema"]
                self.assertEqual(schema.misfits(value, wanted, description), [], path)
        return statuses

    def test_answers_as_it_is_described(self):
        self.admin("--token-file", self.token_file())
        statuses = self.check_answers()
        self.assertEqual(statuses["/api/v1/pipeline"], 503)
        self.assertEqual(statuses["/api/v1/pause"], 503)
        (self.path / "words.txt").write_text("a\nb\nc\n")
        server = self.serve(self.pipeline(LOOKED_UP, deliver="{epochs: null}"))
        self.train("--delay-ms", "5")
        self.wait_until(lambda report: report["streams"] and report["streams"][0]["steps"] > 20)
        statuses = self.check_answers()
        self.assertEqual({statuses[path] for path in ("/api/v1/status", "/metrics", "/readyz",
                                                      "/api/v1/pause", "/api/v1/drain")}, {200})
        self.assertEqual(server.wait(timeout=DEADLINE_S), 0)  # it was told to drain, among others

    def test_describes_every_path_but_the_page(self):
        self.admin()
        described = json.loads(self.ask("/api/v1/openapi.json")[2])["paths"]
        for path in ("/api/v1/status", "/api/v1/history", "/metrics", "/healthz", "/readyz"):
            self.assertIn(path, described)
            self.assertEqual(self.ask(path, "HEAD")[2], "")

    def test_counts_what_vocabularies_are_asked(self):
        (self.path / "words.txt").write_text("a\nb\nc\n")
        file = self.pipeline(LOOKED_UP)
        self.serve(file)
        self.admin()
        self.lines(self.read())
        report = self.wait_until(lambda report: report["streams"][0]["rows"] == 800)
        found = {one["vocabulary"]: one for one in report["streams"][0]["vocabularies"]}
        figures = {name: (one["terms"], one["lookups"], one["out_of_vocabulary"])
                   for name, one in found.items()}
        self.assertEqual(figures["words.txt"], (3, 1600, 400))
        self.assertEqual(figures["pipeline.yaml:8"], (2, 800, 600))
        self.assertEqual(figures["pipeline.yaml:9"], (2, 1300, 600))
        self.assertTrue(all(one["table_bytes"] > 0 for one in found.values()))
        metrics = self.ask("/metrics")[2]
        for name, value in (("lookups_total", 1600), ("out_of_vocabulary_total", 400), ("terms", 3)):
            lines = [line for line in metrics.splitlines()
                     if line.startswith(f"tundish_vocabulary_{name}{{") and '"words.txt"' in line]
            self.assertEqual([line.split()[-1] for line in lines], [str(value)], name)
        for option in ([], ["--json"]):
            out = subprocess.run([TUNDISH, "status", "--interval", "10", *option],
                                 env=self.environment, capture_output=True, text=True)
            self.assertIn("words.txt", out.stdout)

    def test_refuses_what_is_not_in_the_table(self):
        self.admin()
        for path in ("/nothing", "/../etc/passwd", "/%2e%2e/etc/passwd", "//", "/api/v1/"):
            self.assertEqual(self.ask(path)[0], 404, path)
        self.assertEqual(self.ask("/metrics", "DELETE")[0], 405)
        self.assertEqual(self.ask("/api/v1/pause")[0], 403)

    def test_says_that_no_server_is_there_and_sees_it_come(self):
        self.admin()
        self.assertEqual(self.ask("/readyz")[0], 503)
        self.assertEqual(self.status()["nodes"], [])
        self.serve(self.pipeline(PLAIN))
        self.wait_for_verdict(level="idle", sentence="no trainer reads stream 'train'")

    def test_sees_a_server_killed_and_another_in_its_place(self):
        file = self.pipeline(PLAIN)
        server = self.serve(file)
        self.admin()
        self.wait_for_verdict(level="idle")
        stop(server, signal.SIGKILL)
        verdict = self.wait_for_verdict(level="gone", cause="server")
        self.assertIn("is gone", verdict["sentence"])
        self.serve(file)
        self.wait_for_verdict(level="idle")
        self.assertEqual(self.status()["nodes"][0]["restarts"], 1)

    def test_may_be_killed_without_anyone_noticing(self):
        file = self.pipeline(["range: 20000", "batch: 64"])
        expected = self.peek(file)[0]
        self.serve(file)
        admin = self.admin()
        reader = self.read_paced()
        reader.take(6)
        self.wait_until(has_readers(1))
        stop(admin, signal.SIGKILL)
        self.assertEqual(batches(reader.finish()), expected)

    def test_ends_well_where_its_terminal_closes(self):
        # Also where the tests are run by nohup.
        self.addCleanup(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_DFL))
        self.assertEqual(stop(self.admin(), signal.SIGHUP), 0)

    def test_metrics_pass_the_linter_of_prometheus(self):
        promtool = shutil.which("promtool")
        if promtool is None:
            self.skipTest("promtool is not installed")
        (self.path / "words.txt").write_text("a\nb\nc\n")
        self.serve(self.pipeline(LOOKED_UP, deliver="{epochs: null}"))
        self.train("--delay-ms", "5")
        self.train("--delay-ms", "5", TUNDISH_SESSION="own")
        self.admin()
        report = self.wait_until(lambda report: len(report["streams"]) == 2
                                 and all(stream["steps"] > 0 for stream in report["streams"]))
        self.assertEqual({stream.get("session") for stream in report["streams"]}, {None, "own"})
        command = [promtool, "check", "metrics"]
        metrics = self.ask("/metrics")[2]
        for line in metrics.splitlines():
            names = re.findall(r'[{,](\w+)="', line)
            self.assertEqual(len(names), len(set(names)), line)
        out = subprocess.run(command, input=metrics, capture_output=True, text=True)
        self.assertEqual((out.returncode, out.stderr), (0, ""))

    def test_is_scraped_by_a_real_prometheus(self):
        prometheus = shutil.which("prometheus")
        if prometheus is None:
            self.skipTest("prometheus is not installed")
        self.serve(self.pipeline(PLAIN, deliver="{epochs: null}"))
        self.train("--delay-ms", "5")
        self.admin()
        (self.path / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s}\nscrape_configs:\n"
            f"- {{job_name: tundish, static_configs: [{{targets: ['{self.host}']}}]}}\n"
        )
        process = self.start(
            [
                prometheus,
                f"--config.file={self.path}/prometheus.yml",
                f"--storage.tsdb.path={self.path}/prometheus",
                "--web.listen-address=127.0.0.1:0",
            ]
        )
        wanted = 'rate(tundish_stream_rows_total{stream="train"}[1m]) > 0'
        value = self.query_prometheus(process, wanted)
        self.assertEqual(value["metric"]["stream"], "train")
        self.assertEqual(self.query_prometheus(process, "tundish_up")["value"][1], "1")

    def query_prometheus(self, process, query):
        """The first value that a query gives, once it gives one."""
        path = f"/api/v1/query?query={urllib.parse.quote(query)}"
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            for port in listening_ports(process.pid):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
                connection.request("GET", path)
                answer = connection.getresponse()
                found = json.load(answer)["data"]["result"] if answer.status == 200 else []
                connection.close()
                if found:
                    return found[0]
            time.sleep(0.2)
        raise AssertionError(f"prometheus never had {query}")


def listening_ports(pid):
    """The TCP ports at which a process listens: those that it was given when it asked for any."""
    sockets = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # it is closed by now
            sockets.add(os.readlink(descriptor))
    lines = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return [int(line[1].split(":")[1], 16) for line in lines
            if line[3] == "0A" and f"socket:[{line[9]}]" in sockets]


class Orders(AdminRig):
    def ask_order(self, what, *headers):
        status, _, body = self.ask(f"/api/v1/{what}", "POST", [("Content-Length", "0"), *headers])
        return status, json.loads(body)

    def test_pause_and_resume(self):
        self.serve(self.pipeline(PLAIN, deliver="{epochs: null}"))
        self.admin("--token-file", self.token_file())
        self.train("--delay-ms", "1")
        self.wait_until(lambda report: report["streams"][0]["steps_rate"] > 0)
        self.assertEqual(self.ask_order("pause", BEARER)[0], 200)
        self.wait_until(
            lambda report: "an operator has paused" in report["verdict"]["sentence"]
            and report["streams"][0]["steps_rate"] == 0
        )
        self.assertEqual(self.ask_order("resume", BEARER)[0], 200)
        self.wait_until(lambda report: report["streams"][0]["steps_rate"] > 0)

    def test_checkpoint_gives_a_place_to_go_on_from(self):
        file = self.pipeline(PLAIN)
        expected = self.peek(file)[0]
        server = self.serve(file)
        self.admin("--token-file", self.token_file())
        self.train("--batches", "5", "--hold")  # holds the fifth
        self.wait_until(lambda r: any(x["released"] == 4 for x in r["streams"][0]["readers"]))
        status, answer = self.ask_order("checkpoint", BEARER)
        self.assertEqual(status, 200, answer)
        stop(server, signal.SIGKILL)
        self.serve(file)
        rest = batches(self.lines(self.read("--batches", "3", "--place", answer["text"])))
        self.assertEqual(rest, expected[4:7])

    def test_drain(self):
        server = self.serve(self.pipeline(PLAIN, deliver="{epochs: null}"))
        self.admin("--token-file", self.token_file())
        reader = self.read("--delay-ms", "1")
        self.wait_until(has_readers(1))
        self.assertEqual(self.ask_order("drain", BEARER)[0], 200)
        self.assertEqual(self.lines(reader)[-1], "stopped")
        self.assertEqual(server.wait(timeout=DEADLINE_S), 0)

    def test_log_level(self):
        self.serve(self.pipeline(PLAIN))
        self.admin("--token-file", self.token_file())
        for level in ("error", "warning", "notice", "debug"):
            status, answer = self.ask_order(f"log-level/{level}", BEARER)
            self.assertEqual((status, answer["done"]), (200, True))
        self.assertEqual(self.ask_order("log-level/loud", BEARER)[0], 404)

    def test_without_a_server_is_told(self):
        self.admin("--token-file", self.token_file())
        self.assertEqual(self.ask_order("pause", BEARER)[0], 503)

    def test_need_the_token(self):
        self.serve(self.pipeline(PLAIN))
        self.admin("--token-file", self.token_file())
        for headers in ([], [("Authorization", "Bearer wrong")], [("Authorization", TOKEN)]):
            self.assertEqual(self.ask_order("pause", *headers)[0], 401)
        self.assertNotIn(TOKEN, (self.path / "admin-log").read_text())

    def test_are_refused_without_a_token_file(self):
        self.admin()
        self.assertEqual(self.ask_order("pause", BEARER)[0], 403)


if __name__ == "__main__":
    unittest.main()
