"""A bare Debian of this machine's release in a folder, as a new machine is: for tests of packages.

What runs in it sees its own processes and mounts only. They end with the command, and so nothing stays
behind but the folder, which `remove` removes.
"""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

DEADLINE_S = int(os.environ.get("TUNDISH_TEST_DEADLINE_S", "1800"))

# A process namespace of its own: whatever a command leaves running is killed with it.
_ENTER = """
root=$1
shift
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys" 2>/dev/null || true
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive sh -euc "$0"
"""


class BareRoot:
    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="tundish-root-"))
        self.path = self.folder / "root"
        self.sources = _sources()
        try:
            self._make()
        except BaseException:
            self.remove()
            raise

    def _make(self):
        codename = subprocess.check_output(["sh", "-c", ". /etc/os-release; echo $VERSION_CODENAME"])
        lists = self.folder / "sources.list"
        lists.write_text("".join(f"{line}\n" for line in self.sources))
        command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase"]
        command += ["--skip=cleanup/apt/lists"]
        done = _as_root(*command, codename.decode().strip(), str(self.path), str(lists))
        if done.returncode:
            raise unittest.SkipTest(f"mmdebstrap made no root: {_last(done.stderr)}")
        done = self.run("true", check=False)
        if done.returncode:
            raise unittest.SkipTest(f"a bare root cannot be entered: {_last(done.stderr)}")

    def run(self, script, check=True):
        """Run a shell script in it, as root. What it writes is in the result."""
        enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", _ENTER]
        done = _as_root(*enter, script, str(self.path))
        if check and done.returncode:
            raise AssertionError(f"status {done.returncode} of:\n{script}\n{done.stdout}{done.stderr}")
        return done

    def put(self, *files, to):
        """Copy files and folders into a folder of it."""
        _as_root("mkdir", "-p", f"{self.path}{to}")
        done = _as_root("cp", "-r", *map(str, files), f"{self.path}{to}")
        assert done.returncode == 0, done.stderr

    def remove(self):
        _as_root("rm", "-rf", "--one-file-system", str(self.folder))


def _sources():
    """Where this machine has Debian's packages from, as lines of a sources.list."""
    kind = "deb {} {} {}"
    form = "$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)"
    command = ["apt-get", "indextargets", "--format", form, "Created-By: Packages"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    fields = [line.split() for line in said.splitlines()]
    found = {kind.format(*words[:3]) for words in fields if words[3:] == ["Debian"]}
    if not found:
        raise unittest.SkipTest("apt knows no mirror of Debian")
    return sorted(found)


def _as_root(*command):
    """The result of a command that needs root: run by root itself, or through sudo."""
    before = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if before and shutil.which("sudo") is None:
        raise unittest.SkipTest("neither root nor sudo")
    return subprocess.run(
        [*before, *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=DEADLINE_S,
    )


def _last(text):
    return (text.strip().splitlines() or ["no word"])[-1]
