"""The cell `admin-large`: tundish-admin beside a job of 4,096 trainers on 512 nodes.

Their metrics are written by tests/admin/many_nodes, with the server's own writer and relay. Each path is
asked once a second, as the page and Prometheus do; then a headless Chromium opens the page, and the
time runs until the node that is slow stands in its table, and until all of the page is drawn.
"""

import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from . import processes

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "admin"))
import browser  # noqa: E402

NODES, TRAINERS, SLOW = 512, 8, 317
PATHS = ("/metrics", "/api/v1/nodes", f"/api/v1/nodes/{SLOW}", "/api/v1/history/recent", "/api/v1/history",
         "/api/v1/status")
TIMES = 7
DEADLINE_S = 120


def start(stack, build, scratch):
    """The job and its admin; returns the admin's process and address."""
    environment = {"TUNDISH_SERVER": str(scratch / "socket")}
    nodes = stack.enter_context(processes.Program(
        [build / "tests/admin/many_nodes", scratch / "socket", NODES, TRAINERS, SLOW, "stage"], environment))
    nodes.read_line(DEADLINE_S)
    read_end, write_end = os.pipe()
    admin = stack.enter_context(processes.Program(
        [build / "admin/tundish-admin", "--listen", "127.0.0.1:0", "--ready-fd", write_end], environment,
        pass_fds=[write_end]))
    os.close(write_end)
    url = os.read(read_end, 200).decode().strip()
    os.close(read_end)
    return admin, url.rstrip("/")


def ask(url, path):
    """The seconds that it took, and the bytes that came."""
    began = time.monotonic()
    with urllib.request.urlopen(url + path, timeout=DEADLINE_S) as answer:
        body = answer.read()
    return time.monotonic() - began, len(body)


def asked(url):
    line = {}
    for path in PATHS:
        answers = []
        for _ in range(TIMES):
            answers.append(ask(url, path))
            time.sleep(1)  # until the figures are new
        line[path] = {"ms": round(1e3 * statistics.median(seconds for seconds, _ in answers), 1),
                      "ms_most": round(1e3 * max(seconds for seconds, _ in answers), 1),
                      "bytes": answers[-1][1]}
    return line


def opened(url):
    """Seconds from the address to the table with the slow node, and to the charts."""
    table, whole = [], []
    for _ in range(TIMES):
        with browser.Browser(browser.find()) as page:
            began = time.monotonic()
            page.open(url)
            page.wait_for(f"document.querySelector('#nodes tbody tr')?.innerText.includes('node-{SLOW}')")
            table.append(time.monotonic() - began)
            page.wait_for("typeof Chart !== 'undefined' && Chart.getChart('waits')?.data.datasets.length > 0")
            whole.append(time.monotonic() - began)
    return {"page_table_s": round(statistics.median(table), 2), "page_table_s_most": round(max(table), 2),
            "page_whole_s": round(statistics.median(whole), 2), "page_whole_s_most": round(max(whole), 2)}


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure(options):
    with tempfile.TemporaryDirectory(prefix="tundish-bench-") as scratch, contextlib.ExitStack() as stack:
        admin, url = start(stack, options.build, Path(scratch))
        while json.load(urllib.request.urlopen(url + "/api/v1/nodes", timeout=DEADLINE_S))["node_count"] < NODES:
            time.sleep(0.2)
        time.sleep(15)  # the window of the verdicts is full
        before, began = processes.own_cpu_s(admin.pid), time.monotonic()
        time.sleep(options.seconds)
        cores = (processes.own_cpu_s(admin.pid) - before) / (time.monotonic() - began)
        line = {"trainers": NODES * TRAINERS, "nodes": NODES, "paths": asked(url),
                "admin_idle_cores": round(cores, 3),
                "admin_resident_mb": round(resident_bytes(admin.pid) / 1e6)}
        if browser.find():
            line |= opened(url)
    if options.json:
        print(json.dumps({"cell": "admin-large", **line}), flush=True)
        return
    for path, figures in line.pop("paths").items():
        print(f"admin-large: {path}: {figures['ms']} ms (at most {figures['ms_most']}), {figures['bytes']} bytes")
    print("admin-large: " + ", ".join(f"{name} {value}" for name, value in line.items()), flush=True)
