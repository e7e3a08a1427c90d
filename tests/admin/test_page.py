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
                    wide = page.value("document.documentElement.scrollWidth")
                    self.assertLessEqual(wide, width, "the page is wider than the screen")
                    page.screenshot(self.shots / f"{name}.png")
            colours = "getComputedStyle(document.body).backgroundColor"
            page.open(self.url, dark=False)
            light = page.wait_for(colours)
            page.open(self.url, dark=True)
            self.assertNotEqual(page.wait_for(colours), light)
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


if __name__ == "__main__":
    unittest.main()
