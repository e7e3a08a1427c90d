"""A job of 512 nodes with 4,096 trainers, whose metrics a stand-in writes: what is told of it stays
small, and the node that is slow is found."""

import json
import os
import re
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import accessibility  # noqa: E402
import browser  # noqa: E402
import schema  # noqa: E402
from rig_admin import AdminRig  # noqa: E402
from rig import DEADLINE_S  # noqa: E402

MANY_NODES = os.environ["TUNDISH_MANY_NODES"]
MONITORING = Path(__file__).parents[2] / "admin" / "monitoring"
SLOW = 317


class ManyRig(AdminRig):
    def start_many(self, nodes, trainers, *slow):
        socket = self.environment["TUNDISH_SERVER"]
        command = [MANY_NODES, socket, str(nodes), str(trainers), *map(str, slow)]
        others = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.others.append(others)
        self.addCleanup(others.stdout.close)
        self.assertEqual(others.stdout.readline().split(), [b"%d" % nodes, b"nodes"])
        self.admin()
        self.wait_for(lambda: self.nodes()["node_count"] == nodes)

    def wait_for(self, condition):
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            self.assertLess(time.monotonic(), deadline, self.worst())
            time.sleep(0.2)

    def nodes(self):
        return json.loads(self.ask("/api/v1/nodes")[2])

    def worst(self):
        nodes = self.nodes()
        return nodes["nodes"][0] if nodes["nodes"] else None

    def wait_for_worst(self, rank=None, **wanted):
        """Wait until the node that is told first has that rank and verdict; returns it."""
        def has_it():
            worst = self.worst()
            return worst and rank in (None, worst["rank"]) and all(
                worst["verdict"][key] == value for key, value in wanted.items())

        self.wait_for(has_it)
        return self.worst()

    def metrics(self):
        return self.ask("/metrics")[2]


class ManyNodes(ManyRig):
    """512 nodes, 4,096 trainers."""

    def test_metrics_are_bounded_and_tell_what_alerts_ask_for(self):
        self.start_many(512, 8, SLOW, "stage")
        self.wait_for_worst(SLOW, level="waiting")
        metrics = self.metrics()
        self.assertLess(len(metrics), 2_000_000)
        of_readers = [line for line in metrics.splitlines()
                      if line.startswith("tundish_reader_wait_seconds_total{")]
        self.assertEqual(len(of_readers), 128)
        # The eight that wait are among them, and the sum is that of all.
        self.assertEqual(sum(f'host="node-{SLOW}"' in line for line in of_readers), 8)
        self.assertRegex(metrics, r'(?m)^tundish_job_reader_attached\{stream="train",group="default"\} 1$')
        rows = re.findall(r"(?m)^tundish_job_stream_rows_total\{.*\} (\d+)$", metrics)
        self.assertEqual(len(rows), 1)
        of_nodes = re.findall(r"(?m)^tundish_stream_rows_total\{.*\} (\d+)$", metrics)
        self.assertEqual(len(of_nodes), 512)
        self.assertEqual(int(rows[0]), sum(map(int, of_nodes)))
        left_out = int(re.search(r"(?m)^tundish_sets_left_out (\d+)$", metrics)[1])
        self.assertGreater(left_out, 4096)
        self.assertIn("of the 128 trainers that waited most", metrics)
        queries = re.findall(r"expr: (.*?)\n\s*(?:\w+:)", (MONITORING / "alerts.yml").read_text(), re.DOTALL)
        for name in set(re.findall(r"\btundish_\w+", "\n".join(queries))):
            if re.match("tundish_(job_)?(vocabulary|store|helper|column)_", name):  # of which this job has none
                continue
            told = len(re.findall(rf"(?m)^{name}\{{", metrics))
            self.assertIn(told, (1,) if "_job_" in name else (128,) if "_reader_" in name else (512,), name)

    def test_answers_are_bounded_and_as_they_are_described(self):
        self.start_many(512, 8, SLOW, "stage")
        self.wait_for_worst(SLOW, level="waiting")
        description = json.loads(self.ask("/api/v1/openapi.json")[2])
        schemas = description["components"]["schemas"]
        nodes = self.ask("/api/v1/nodes")[2]
        self.assertLess(len(nodes), 1_000_000)
        self.assertEqual(schema.misfits(json.loads(nodes), schemas["Nodes"], description), [])
        self.assertEqual(len(json.loads(nodes)["nodes"]), 512)
        self.assertEqual(sum(node["trainers"] for node in json.loads(nodes)["nodes"]), 4096)
        status = json.loads(self.ask("/api/v1/status")[2])
        self.assertEqual((status["node_count"], len(status["nodes"])), (512, 16))
        self.assertIn(SLOW, [node["rank"] for node in status["nodes"]])
        for rank in (0, SLOW, 511):
            status, _, body = self.ask(f"/api/v1/nodes/{rank}")
            self.assertEqual(status, 200)
            self.assertEqual(json.loads(body)["rank"], rank)
            self.assertEqual(schema.misfits(json.loads(body), schemas["Node"], description), [])
        for path in ("512", "-1", "007", "1x", "", "99999999999"):
            self.assertEqual(self.ask(f"/api/v1/nodes/{path}")[0], 404, path)

    def test_histories_are_kept_of_every_trainer(self):
        self.start_many(512, 8, SLOW, "stage")

        def recent():
            return json.loads(self.ask("/api/v1/history/recent")[2])

        def waits():
            return [series["rank"] for series in recent()["series"] if series["what"] == "wait"]

        self.wait_for(lambda: waits().count(str(SLOW)) == 8)  # they wait most
        self.assertEqual(len(waits()), 64)
        recent = recent()
        self.assertGreater(recent["left_out"], 8000)
        sums = {series["what"]: series for series in recent["series"] if series["rank"] == "all"}
        self.assertEqual(set(sums), {"rows", "read"})
        for rank in (0, 100, SLOW, 511):
            series = json.loads(self.ask(f"/api/v1/history/{rank}")[2])["series"]
            self.assertEqual({one["rank"] for one in series}, {str(rank)})
            self.assertEqual(sum(one["what"] == "wait" for one in series), 8, rank)
            self.assertEqual({one["what"] for one in series}, {"rows", "read", "batches", "wait", "cpu"})


class SlowNode(ManyRig):
    """A node that is slower than its siblings on the same work, and nodes that are not."""

    def test_that_computes_slowly_is_named(self):
        self.start_many(16, 2, 7, "stage")
        worst = self.wait_for_worst(7, level="waiting", cause="node", culprit="node-007")
        self.assertEqual(worst["rank"], 7)
        self.assertRegex(worst["verdict"]["sentence"],
                         r"string_lookup takes \d+%.*; for each row this node works [23]\.\d times as "
                         r"long as the others do \(median\)$")
        self.assertIn("Look at this machine", worst["verdict"]["advice"])
        self.assertGreater(worst["slowness"], 2)
        self.assertLess(self.nodes()["nodes"][1]["slowness"], 1.2)
        report = json.loads(self.ask("/api/v1/nodes/7")[2])["report"]
        self.assertEqual(report["verdict"]["cause"], "node")
        self.assertRegex(self.metrics(), r'tundish_node_slowness_ratio\{host="node-007",rank="7"\} [23]\.')

    def test_is_not_named_where_all_are_as_slow(self):
        self.start_many(16, 2, "all", "stage")
        worst = self.wait_for_worst(level="waiting", cause="stage", culprit="string_lookup")
        self.assertNotIn("times as long", worst["verdict"]["sentence"])
        self.assertLess(max(node["slowness"] for node in self.nodes()["nodes"]), 1.2)

    def test_that_waits_for_its_files_keeps_that_cause(self):
        self.start_many(16, 2, 7, "storage")
        worst = self.wait_for_worst(7, level="waiting", cause="source", culprit="tfrecord")
        self.assertIn("the server waits for its storage; for each row this node works ",
                      worst["verdict"]["sentence"])
        self.assertIn("compare this node's mount, disk and network", worst["verdict"]["advice"])
        self.assertRegex(self.metrics(), r'tundish_node_file_wait_ratio\{host="node-007",rank="7"\} 0\.[5-9]')

    def test_is_not_named_while_no_trainer_waits(self):
        self.start_many(16, 2)
        self.wait_for_worst(level="fine", cause="trainer")


class ManyNodesPage(ManyRig):
    """The page of that job, for those who see it and those who do not. Pictures are left where
    TUNDISH_SCREENSHOTS says."""

    def setUp(self):
        super().setUp()
        self.program = browser.find()
        if self.program is None:
            self.skipTest("no chromium is installed")
        self.shots = Path(os.environ.get("TUNDISH_SCREENSHOTS", self.path))
        self.shots.mkdir(parents=True, exist_ok=True)

    def open_page(self, page, **options):
        page.open(self.url, **options)
        page.wait_for("document.querySelectorAll('#nodes tbody tr').length > 0")
        page.wait_for("document.querySelectorAll('#lanes .slot').length >= 3")
        page.wait_for("Chart.getChart('waits').data.datasets.length >= 1")

    def first_row(self, page):
        return page.text("#nodes tbody tr")

    def test_finds_the_slow_node(self):
        self.start_many(512, 8, SLOW, "stage")
        self.wait_for_worst(SLOW, level="waiting")
        with browser.Browser(self.program) as page:
            for name, width, dark in (("light", 1280, False), ("dark", 1280, True), ("phone", 390, True)):
                self.open_page(page, width=width, height=2600, dark=dark)
                page.wait_for("document.querySelector('#sentence').innerText.includes('string_lookup takes')")
                self.assertIn(f"node-{SLOW}", self.first_row(page))
                self.assertIn("this node works", self.first_row(page))
                self.assertEqual(page.text("#nodes-words"), "512 nodes, 4,096 trainers: 1 waiting, 511 fed")
                self.assertEqual(page.value("document.querySelectorAll('#nodes tbody tr').length"), 20)
                self.assertIn(f"node-{SLOW}", page.text("#server"))
                self.assertLessEqual(page.value("document.documentElement.scrollWidth"), width)
                page.screenshot(self.shots / f"many-{name}.png")
            self.assertLess(page.value("document.querySelectorAll('*').length"), 5000)
            self.assertEqual(page.console, [])

    def test_is_used_with_the_keyboard_alone(self):
        self.start_many(512, 8, SLOW, "stage")
        self.wait_for_worst(SLOW, level="waiting")
        with browser.Browser(self.program) as page:
            self.open_page(page)
            self.tab_to(page, "Show all 512 nodes")
            accessibility.press(page, "Enter", text="\r", windowsVirtualKeyCode=13)
            page.wait_for("document.querySelectorAll('#nodes tbody tr').length == 512")
            self.assertEqual(page.value("document.querySelector('#more-nodes').getAttribute('aria-expanded')"),
                             "true")
            page.value("document.querySelector('#nodes tbody tr:nth-child(500) button').focus()")
            wanted = page.text("#nodes tbody tr:nth-child(500) button")
            accessibility.press(page, "Enter", text="\r", windowsVirtualKeyCode=13)
            page.wait_for(f"document.querySelector('#server').innerText.startsWith({json.dumps(wanted)})")
            # Rows are sorted anew each second; the focus stays with its node.
            for _ in range(3):
                before = page.value("document.querySelector('#numbers').innerHTML")
                page.wait_for(f"document.querySelector('#numbers').innerHTML != {json.dumps(before)}")
            self.assertTrue(accessibility.focused(page)["name"].endswith(wanted))
            self.assertEqual(page.value("document.activeElement.getAttribute('aria-pressed')"), "true")

    def tab_to(self, page, name):
        for _ in range(100):
            accessibility.press(page, "Tab", windowsVirtualKeyCode=9)
            if name in accessibility.focused(page)["name"]:
                return
        self.fail(f"Tab never comes to {name}")


class Accessibility(ManyRig):
    """Names, contrast, order and sight of the focus, in both colour schemes, for verdicts of all kinds."""

    def setUp(self):
        super().setUp()
        self.program = browser.find()
        if self.program is None:
            self.skipTest("no chromium is installed")

    def check(self, page, what, **options):
        for dark in (False, True):
            with self.subTest(f"{what}, {'dark' if dark else 'light'}"):
                page.open(self.url, dark=dark, **options)
                page.wait_for("document.querySelector('#sentence').innerText != 'Waiting for the first metrics.'")
                page.wait_for("document.querySelector('#level').innerText != 'Connecting'")
                if what != "empty":
                    page.wait_for("document.querySelectorAll('#lanes .slot').length >= 3")
                page.value("for (const one of document.querySelectorAll('details')) one.open = true")
                self.assertEqual(accessibility.unnamed(page), [])
                self.assertEqual(accessibility.headings(page), [])
                self.assertEqual(accessibility.pale(page), [])
                # Nodes change places when it is drawn anew, which would look like a wrong order.
                page.value("window.setTimeout = () => { window.is_still = true; return 0 }")
                page.wait_for("window.is_still")
                self.assertEqual(accessibility.hidden_or_out_of_order(accessibility.walk(page)), [])

    def test_of_a_job_of_many_nodes(self):
        self.start_many(24, 8, 7, "storage")
        self.wait_for_worst(level="waiting")
        with browser.Browser(self.program) as page:
            self.check(page, "waiting")
            self.check(page, "waiting on a phone", width=390)

    def test_of_a_server_that_is_gone(self):
        self.start_many(3, 2)
        self.wait_for_worst(level="fine")
        with browser.Browser(self.program) as page:
            self.check(page, "fine")
            for process in self.others:
                process.kill()
                process.wait()
            self.wait_for_worst(level="gone")
            self.check(page, "gone")

    def test_before_a_server_is_seen(self):
        self.admin("--token-file", self.token_file())
        with browser.Browser(self.program) as page:
            self.check(page, "empty")

    def test_what_is_wrong_is_found(self):
        """The checks themselves, on a page that is bad in each of their ways."""
        self.admin()
        with browser.Browser(self.program) as page:
            page.open("data:text/html,<h1>a</h1><h3>b</h3><button></button><button style='outline:0'>c</button>"
                      "<p style='color:%23999;background:%23aaa'>pale</p>" + "<p>text</p>" * 30 +
                      "<a href='%23x' tabindex=1>first</a>")
            page.wait_for("document.querySelectorAll('p').length > 30")
            self.assertEqual(accessibility.unnamed(page), ["button without a name"])
            self.assertEqual(accessibility.headings(page), ["heading 3 after 1"])
            self.assertEqual([text.split(":")[0] for text in accessibility.pale(page)], ["p 'pale'"])
            wrong = accessibility.hidden_or_out_of_order(accessibility.walk(page))
            self.assertIn("button c: no outline", wrong)
            self.assertTrue(any(" after a first" in text for text in wrong), wrong)


if __name__ == "__main__":
    unittest.main()
