"""The dashboard, in a real browser."""

import json
import os
import signal
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import browser  # noqa: E402
from rig_admin import PLAIN, TOKEN, AdminRig, costly  # noqa: E402
from rig import stop  # noqa: E402

class Page(AdminRig):
    """Screenshots are left where TUNDISH_SCREENSHOTS says."""

    def setUp(self):
        super().setUp()
        self.program = browser.find()
        if self.program is None:
            self.skipTest("no chromium is installed")
        self.shots = Path(os.environ.get("TUNDISH_SCREENSHOTS", self.path))
        self.shots.mkdir(parents=True, exist_ok=True)

    def test_says_what_limits_the_job(self):
        self.serve(self.pipeline(costly(), deliver="{epochs: null}"), "--threads", "1")
        self.admin("--token-file", self.token_file())
        self.train()
        self.wait_for_verdict(level="waiting", culprit="map")
        with browser.Browser(self.program) as page:
            for name, width, dark in (("light", 1280, False), ("dark", 1280, True), ("phone", 390, True)):
                with self.subTest(name):
                    page.open(self.url, width=width, dark=dark)
                    page.wait_for("document.querySelector('#sentence').innerText.includes('map takes')")
                    page.wait_for("document.querySelectorAll('#diagram svg g').length >= 4")
                    page.wait_for("document.querySelectorAll('#lanes .slot').length >= 3")
                    page.wait_for("Chart.getChart('waits').data.datasets.length == 1")
                    self.assertIn("replica 0", page.text("#lanes"))
                    self.assertRegex(page.text("#window"), r"over the last \d+ s")
                    self.assertIn("map", page.text("#stages"))
                    self.assertIn("from_tensor_slices", page.value("document.querySelector('#file').textContent"))
                    reason = page.value("document.querySelector('#nodes td.reason').getBoundingClientRect().right")
                    self.assertLessEqual(reason, width, "the reason lies beyond the edge")
                    wide = page.value("document.documentElement.scrollWidth")
                    self.assertLessEqual(wide, width, "the page is wider than the screen")
                    page.screenshot(self.shots / f"{name}.png")
            colour = "getComputedStyle(document.body).backgroundColor"
            painted = f"{colour} != 'rgba(0, 0, 0, 0)' && {colour}"  # which it is until the styles are there
            page.open(self.url, dark=False)
            light = page.wait_for(painted)
            page.open(self.url, dark=True)
            self.assertNotEqual(page.wait_for(painted), light)
            self.assertEqual(page.console, [])

    def test_orders_with_the_keyboard_and_shows_a_restart(self):
        file = self.pipeline(PLAIN, deliver="{epochs: null}")
        server = self.serve(file)
        self.admin("--token-file", self.token_file())
        self.train("--delay-ms", "5", "--survive")
        self.wait_until(lambda report: report["streams"][0]["steps"] > 0)
        with browser.Browser(self.program) as page:
            page.open(self.url)
            page.wait_for("!document.querySelector('#control').hidden")
            page.value(f"document.querySelector('#token').value = {json.dumps(TOKEN)}")
            page.value("document.querySelector('button[value=pause]').focus()")
            for kind in ("keyDown", "keyUp"):
                page.ask("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r")
            page.wait_for("document.querySelector('#answer').innerText.includes('paused')")
            page.wait_for("document.querySelector('#sentence').innerText.includes('paused')")
            stop(server, signal.SIGKILL)
            page.wait_for("document.querySelector('#verdict').dataset.level == 'gone'")
            self.serve(file)
            page.wait_for("document.querySelector('#notice').innerText.includes('restarted once')")
            self.assertEqual(page.console, [])

    def start_two(self):
        """A server that two trainers read."""
        file = self.pipeline(PLAIN, distribute="{replicas: 2}", deliver="{epochs: null}")
        server = self.serve(file)
        self.admin("--token-file", self.token_file())
        for replica in range(2):
            self.train("--delay-ms", "5", "--survive", replica=replica)
        self.wait_until(lambda report: sum(r["taken"] > 5 for r in report["streams"][0]["readers"]) == 2)
        return file, server

    def mouse(self, page, kind, x, y, **more):
        page.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def place(self, page, chart, share):
        """A point over a chart, that share of its width from the left."""
        box = json.loads(page.value(
            f"document.querySelector('#{chart}').scrollIntoView({{block: 'center'}}), "
            f"JSON.stringify(document.querySelector('#{chart}').getBoundingClientRect())"))
        area = json.loads(page.value(
            f"JSON.stringify((({{left, right}}) => [left, right])(Chart.getChart('{chart}').chartArea))"))
        return box["x"] + area[0] + share * (area[1] - area[0]), box["y"] + box["height"] / 2

    def test_marks_a_restart_in_the_charts_and_after_it_is_loaded_again(self):
        file, server = self.start_two()
        with browser.Browser(self.program) as page:
            page.open(self.url)
            page.wait_for("Chart.getChart('steps').data.datasets.length == 2")
            page.wait_for("Chart.getChart('stages-time').data.datasets.length > 0")
            page.wait_for("Chart.getChart('steps').data.datasets[0].data.at(-1) > 0.001")
            stop(server, signal.SIGKILL)
            page.wait_for("document.querySelector('#events').textContent.includes('A gone')")
            self.serve(file)
            page.wait_for("document.querySelector('#events').textContent.includes('was restarted')")
            page.open("about:blank")
            page.open(self.url + "#seconds=1200")
            page.wait_for("document.querySelector('#events').textContent.includes('was restarted')")
            page.wait_for("document.querySelector('.range [aria-pressed=true]')?.dataset.seconds == '1200'")
            self.assertEqual(page.console, [])

    def test_looks_closely_holds_still_and_keeps_it_in_the_address(self):
        self.start_two()
        with browser.Browser(self.program) as page:
            page.open(self.url)
            page.wait_for("Chart.getChart('rows').data.datasets[0]?.data.filter((one) => one > 0).length > 3")
            self.mouse(page, "mouseMoved", *self.place(page, "waits", 0.9))
            page.wait_for("Chart.getChart('rows').tooltip.getActiveElements().length == 1")
            page.wait_for("Chart.getChart('steps').tooltip.getActiveElements().length == 2")
            self.mouse(page, "mousePressed", *self.place(page, "rows", 0.5), button="left", buttons=1)
            self.mouse(page, "mouseMoved", *self.place(page, "rows", 0.9), button="left", buttons=1)
            self.mouse(page, "mouseReleased", *self.place(page, "rows", 0.9), button="left")
            page.wait_for("location.hash.includes('from=')")
            page.wait_for("Chart.getChart('rows').data.labels.length < 200")
            labels = "JSON.stringify([Chart.getChart('rows').data.labels[0], Chart.getChart('rows').data.labels.length])"
            seen, address = page.value(labels), page.value("location.href")
            page.open("about:blank")
            page.open(address)
            page.wait_for("Chart.getChart('rows')?.data.datasets.length > 0")
            self.assertEqual(page.value(labels), seen)
            page.value("document.querySelector('[data-seconds=\"300\"]').click()")
            page.wait_for("!location.hash.includes('from=') && Chart.getChart('rows').data.labels.length == 300")
            page.value("document.querySelector('#pause').click()")
            page.wait_for("document.querySelector('#pause').getAttribute('aria-pressed') == 'true'")
            last = "Chart.getChart('rows').data.labels.at(-1)"
            held, tick = page.value(last), self.status()["time_unix"]
            page.wait_for(f"fetch('/api/v1/nodes').then((a) => a.json()).then((a) => window.now = a.time_unix), window.now > {tick + 2}")
            self.assertEqual(page.value(last), held)
            self.assertEqual(page.console, [])

    def test_copies_what_is_shown_and_compares_two(self):
        self.start_two()
        with browser.Browser(self.program) as page:
            page.open(self.url)
            page.wait_for("document.querySelector('#compare')?.rows.length > 5")
            heads = "JSON.stringify([...document.querySelectorAll('#compare thead th')].map((one) => one.innerText))"
            self.assertEqual(json.loads(page.value(heads)), ["Figure", "replica 0", "replica 1"])
            page.wait_for("Chart.getChart('rows').data.datasets.length > 0")
            page.value("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
            page.value("document.querySelector('#copy').click()")
            report = page.wait_for("window.copied")
            sentence = page.value("document.querySelector('#level').textContent")
            for part in (sentence, "== Pipeline", "range", "== Pipeline file and plan", "element_spec", self.url):
                self.assertIn(part, report)
            self.assertEqual(page.wait_for("document.querySelector('#copied').innerText"), "Copied.")
            head, *rows = page.value("Report.csv(Charts.columns())").splitlines()
            self.assertTrue(head.startswith("time,waits: replica 0,waits: replica 1,rows: train,"), head)
            self.assertEqual(len(rows), 300)
            self.assertEqual(page.console, [])


if __name__ == "__main__":
    unittest.main()
