"""A headless Chromium, spoken to over a pipe in its own protocol."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
DEADLINE_S = 600


def find():
    """The browser's path, or None."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


def high_pipe():
    """A pipe whose ends are none of the descriptors that the browser's are moved to."""
    low = os.pipe()
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in low]
    for end in low:
        os.close(end)
    return ends


class Browser:
    """One page. Close it, or use it in `with`."""

    def __init__(self, program):
        profile = tempfile.mkdtemp(prefix="tundish-browser-")
        theirs_in, ours_out = high_pipe()
        ours_in, theirs_out = high_pipe()
        command = [program, "--remote-debugging-pipe", "--headless", "--no-sandbox", "--disable-gpu"]
        command += ["--hide-scrollbars", "--no-first-run", "--disable-dev-shm-usage"]
        command += [f"--user-data-dir={profile}", "about:blank"]
        # The browser reads from descriptor 3, at whose end it ends, and writes to 4. A plain sh knows numbers
        # below 10 only. The shell removes the profile, also where the tests were killed; others of the
        # browser's processes may still write to it.
        script = f'"$@" 3<&{theirs_in} 4>&{theirs_out}; until rm -rf "$0"; do sleep 0.1; done'
        self.process = subprocess.Popen(
            ["bash", "-c", script, profile, *command],
            pass_fds=[theirs_in, theirs_out],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.ours_in, self.ours_out = ours_in, ours_out
        self.buffer = b""
        self.number = 0
        self.session = None
        self.console = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.ours_out)
        os.close(self.ours_in)
        self.process.wait(DEADLINE_S)

    def ask(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.ours_out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def _next(self):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.ours_in], [], [], DEADLINE_S)
            piece = os.read(self.ours_in, 1 << 20) if ready else b""
            if not piece:
                raise RuntimeError("the browser does not answer")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def _note(self, event):
        if event.get("method") == "Runtime.exceptionThrown":
            details = event["params"]["exceptionDetails"]
            self.console.append(details.get("exception", {}).get("description", details["text"]))
        if event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
            self.console.append(event["params"]["entry"]["text"])

    def open(self, url, width=1280, height=1800, dark=False):
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.ask("Page.navigate", url=url)

    def value(self, expression):
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer["result"].get("value")

    def text(self, selector):
        return self.value(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def wait_for(self, expression):
        """Wait until an expression is true; returns its value."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            value = self.value(expression)
            if value:
                return value
            time.sleep(0.1)
        raise AssertionError(f"never true: {expression}; the page says: {self.text('main')[:2000]}")

    def screenshot(self, path):
        data = self.ask("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
