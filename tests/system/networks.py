#!/usr/bin/env python3
"""Nodes as network namespaces of this machine, and a network with delay, loss and a rate between them.

    network = Networks(16, Wire(delay_ms=1, loss_percent=0.5, rate_mbit=1000))
    subprocess.run([*network.on(3), "tundish", "serve", ...])     # runs on the fourth node
    network.close()

A process of its own keeps the nodes: this file, run as a program. When its standard input ends, which it
does however the process that wanted the network ends, it kills all that runs on the nodes, and takes
them away. Those of a keeper that was killed itself are taken away by the next.

Nodes are joined by veth devices and a bridge, and netem makes the delays. Where the kernel has no netem,
each node has a tun device, and the keeper hands the packets on: late, with losses, as netem would.
"""

import contextlib
import dataclasses
import fcntl
import heapq
import os
import random
import re
import select
import signal
import struct
import subprocess
import sys
import time

DEVICE = "eth0"  # on each node
MTU = 9000
ADDRESSES = [f"192.0.2.{i}" for i in range(1, 255)]  # set aside for documentation, so nobody's
HOSTS = [f"tundish-{i}" for i in range(254)]
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
LIMIT = 1000  # packets of a node under way; netem's own


@dataclasses.dataclass
class Wire:
    """Of each node, on its way out."""

    delay_ms: float = 0
    loss_percent: float = 0
    rate_mbit: float = 0  # 0: no limit

    def is_perfect(self):
        return self == Wire()


class Networks:
    def __init__(self, count, wire=Wire()):
        words = [count, wire.delay_ms, wire.loss_percent, wire.rate_mbit]
        # A session of its own: it outlives signals that end all of a test.
        self.keeper = subprocess.Popen(
            [sys.executable, "-B", __file__, *map(str, words)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
        said = self.keeper.stdout.readline().split(maxsplit=2)
        if said[:1] != ["ready"]:
            self.close()
            raise OSError(" ".join(said) or "the network's keeper has ended")
        self.spaces = spaces_of(said[1], count)
        self.way = said[2].strip()

    def on(self, node):
        """What comes before a command that is to run there."""
        return ["ip", "netns", "exec", self.spaces[node]]

    def cut(self, node):
        """Nothing comes from there or goes there any more."""
        ip("-n", self.spaces[node], "link", "set", DEVICE, "down")

    def mend(self, node):
        ip("-n", self.spaces[node], "link", "set", DEVICE, "up")

    def close(self):
        self.keeper.stdin.close()
        self.keeper.wait()
        self.keeper.stdout.close()


def ip(*arguments):
    return run("ip", *arguments)


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def spaces_of(tag, count):
    return [f"{tag}-{i}" for i in range(count)]


def why_not(wire=Wire()):
    """A reason why there can be no such network here, or None."""
    name = f"tnd{os.getpid()}-try"
    try:
        ip("netns", "add", name)
    except FileNotFoundError:
        return "there is no ip (iproute2)"
    except subprocess.CalledProcessError as error:
        return f"network namespaces are not permitted: {error.stderr.strip()}"
    try:
        if wire.is_perfect() or has_netem(name):
            return None
        os.close(tun_device(name)[0])
    except (OSError, subprocess.CalledProcessError) as error:
        return f"the kernel has no netem, and tun devices are not permitted: {error}"
    finally:
        ip("netns", "del", name)
    return None


def has_netem(space):
    words = ["tc", "-n", space, "qdisc", "add", "dev", "lo", "root", "netem", "delay", "0"]
    if subprocess.run(words, capture_output=True).returncode:
        return False
    run("tc", "-n", space, "qdisc", "del", "dev", "lo", "root")
    return True


def take_down(space):
    while pids := subprocess.run(["ip", "netns", "pids", space], capture_output=True,
                                 text=True).stdout.split():
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        time.sleep(0.01)
    subprocess.run(["ip", "netns", "del", space], stderr=subprocess.DEVNULL, check=False)


def sweep():
    for line in ip("netns", "list").splitlines():
        name = line.split()[0]
        tag = re.fullmatch(r"tnd(\d+)-(\d+|switch|try)", name)
        if tag and not os.path.exists(f"/proc/{tag[1]}"):
            take_down(name)


def begin_device(space, node):
    ip("-n", space, "address", "add", f"{ADDRESSES[node]}/24", "dev", DEVICE)
    ip("-n", space, "link", "set", DEVICE, "mtu", str(MTU), "up")


def join_by_bridge(spaces, switch, wire):
    ip("-n", switch, "link", "add", "bridge", "type", "bridge")
    ip("-n", switch, "link", "set", "bridge", "mtu", str(MTU), "up")
    shape = []
    if wire.delay_ms:
        shape += ["delay", f"{wire.delay_ms}ms"]
    if wire.loss_percent:
        shape += ["loss", f"{wire.loss_percent}%"]
    if wire.rate_mbit:
        shape += ["rate", f"{wire.rate_mbit}mbit"]
    for node, space in enumerate(spaces):
        port = f"port{node}"
        ip("-n", space, "link", "add", DEVICE, "type", "veth", "peer", "name", port, "netns", switch)
        ip("-n", switch, "link", "set", port, "mtu", str(MTU), "master", "bridge", "up")
        if shape:
            run("tc", "-n", space, "qdisc", "add", "dev", DEVICE, "root", "netem",
                "limit", str(LIMIT), *shape)
        begin_device(space, node)


def tun_device(space):
    """(descriptor, name): a device that moves to the namespace; its packets come out here."""
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    wanted = struct.pack("16sH22x", b"tnd%d", IFF_TUN | IFF_NO_PI)
    name = fcntl.ioctl(fd, TUNSETIFF, wanted)[:16].rstrip(b"\0").decode()
    ip("link", "set", name, "netns", space, "name", DEVICE)
    return fd, DEVICE


def join_by_tun(spaces):
    devices = []
    for node, space in enumerate(spaces):
        devices.append(tun_device(space)[0])
        begin_device(space, node)
    return devices


class Switch:
    """Hands packets on, as netem and a bridge do."""

    def __init__(self, devices, wire):
        self.devices = devices
        self.wire = wire
        self.draws = random.Random(1)
        self.due = []  # a heap of (when, number, from, to, packet)
        self.number = 0
        self.held = {device: 0 for device in devices}
        self.free = {device: 0.0 for device in devices}

    def run_until_readable(self, end):
        while True:
            now = time.monotonic()
            while self.due and self.due[0][0] <= now:
                _, _, sender, to, packet = heapq.heappop(self.due)
                self.held[sender] -= 1
                with contextlib.suppress(OSError):  # a full queue or a device that is down: it is lost
                    os.write(to, packet)
            pause = max(self.due[0][0] - time.monotonic(), 0) if self.due else None
            ready, _, _ = select.select([end, *self.devices], [], [], pause)
            if end in ready:
                return
            for device in ready:
                self.take(device)

    def take(self, device):
        for _ in range(64):
            try:
                packet = os.read(device, 1 << 16)
            except OSError:
                return
            self.accept(device, packet)

    def accept(self, device, packet):
        node = packet[19] - 1 if packet[0] >> 4 == 4 and len(packet) >= 20 else -1
        if not 0 <= node < len(self.devices) or self.held[device] == LIMIT \
                or self.draws.random() * 100 < self.wire.loss_percent:
            return
        leaves = max(time.monotonic(), self.free[device])
        if self.wire.rate_mbit:
            leaves += len(packet) * 8e-6 / self.wire.rate_mbit
        self.free[device] = leaves
        self.held[device] += 1
        self.number += 1
        due = leaves + self.wire.delay_ms / 1000
        heapq.heappush(self.due, (due, self.number, device, self.devices[node], packet))


def keep(count, wire):
    tag = f"tnd{os.getpid()}"
    spaces, switch = spaces_of(tag, count), f"{tag}-switch"
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        sweep()
        for space in [*spaces, switch]:
            ip("netns", "add", space)
            ip("-n", space, "link", "set", "lo", "up")
        if wire.is_perfect() or has_netem(switch):
            join_by_bridge(spaces, switch, wire)
            print("ready", tag, "netem" if not wire.is_perfect() else "a bridge", flush=True)
            sys.stdin.read()
        else:
            joined = Switch(join_by_tun(spaces), wire)
            print("ready", tag, "tun devices, since the kernel has no netem", flush=True)
            joined.run_until_readable(sys.stdin.fileno())
    except subprocess.CalledProcessError as error:
        print(" ".join(error.cmd), "failed:", error.stderr, flush=True)
    finally:
        for space in [*spaces, switch]:
            take_down(space)


if __name__ == "__main__":
    keep(int(sys.argv[1]), Wire(*map(float, sys.argv[2:5])))
