"""Nodes as network namespaces, each with its own host name, joined by a pair of veth devices."""

import contextlib
import os
import signal
import subprocess

from nodes_rig import NodesRig

HOSTS = ("tundish-0", "tundish-1")
ADDRESSES = ("192.0.2.1", "192.0.2.2")  # set aside for documentation, so nobody's


def ip(*arguments):
    subprocess.run(["ip", *arguments], capture_output=True, text=True, check=True)


def no_namespaces():
    """Why there can be no network namespaces here, or None."""
    name = f"tnd{os.getpid()}-try"
    try:
        ip("netns", "add", name)
        ip("netns", "del", name)
    except FileNotFoundError:
        return "there is no ip (iproute2)"
    except subprocess.CalledProcessError as error:
        return f"network namespaces are not permitted: {error.stderr.strip()}"
    return None


class NetworkRig(NodesRig):
    def setUp(self):
        super().setUp()
        tag = f"tnd{os.getpid()}"
        self.spaces = [f"{tag}-{i}" for i in range(2)]
        self.devices = [f"{tag}v{i}"[-15:] for i in range(2)]
        self.addCleanup(self.take_down)
        self.set_up_network()
        self.on_node = self.script(
            "on-node", "node=$1; shift",
            f"exec ip netns exec {tag}-$node unshare --uts "
            "sh -c 'hostname $0; exec \"$@\"' tundish-$node \"$@\"")
        self.agent = self.script(  # stands in for ssh
            "agent", "address=$1; shift",
            f"[ $address = {ADDRESSES[0]} ] && node=0 || node=1",
            f'exec {self.on_node} $node sh -c "$*"')

    def script(self, name, *lines):
        path = self.path / name
        path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
        path.chmod(0o755)
        return str(path)

    def set_up_network(self):
        for space in self.spaces:
            ip("netns", "add", space)
        ip("link", "add", self.devices[0], "type", "veth", "peer", "name", self.devices[1])
        for space, device, address in zip(self.spaces, self.devices, ADDRESSES):
            ip("link", "set", device, "netns", space)
            ip("-n", space, "address", "add", f"{address}/24", "dev", device)
            ip("-n", space, "link", "set", device, "up")
            ip("-n", space, "link", "set", "lo", "up")

    def take_down(self):
        for space in self.spaces:
            # mpirun's own daemons outlive a network that was torn.
            found = subprocess.run(["ip", "netns", "pids", space], capture_output=True, text=True)
            for pid in found.stdout.split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", space], stderr=subprocess.DEVNULL, check=False)
