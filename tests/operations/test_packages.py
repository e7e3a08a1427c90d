"""The packages of scripts/package deb: what they hold, and their life on a bare machine."""

import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

from bare_root import DEADLINE_S, BareRoot

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "scripts"))
from packing import deb, source  # noqa: E402

NAMES = {
    "libtundish-cuda0", "libtundish-dev", "libtundish-transform0", "libtundish0", "python3-tundish",
    "tundish", "tundish-admin", "tundish-mpi",
}  # fmt: skip
SERVER_BYTES_MAX = 5 << 20
OVERRIDES_MAX = 3


def setUpModule():
    try:
        deb.needs_tools()
    except source.Missing as missing:
        raise unittest.SkipTest(str(missing)) from missing
    command = [REPOSITORY / "scripts" / "package", "deb"]
    subprocess.run(command, check=True, timeout=DEADLINE_S, stdout=sys.stderr)


def packages(folder=REPOSITORY / "dist"):
    """{name: file}, without those of debugging symbols."""
    found = {path.name.split("_")[0]: path for path in sorted(folder.glob("*.deb"))}
    return {name: path for name, path in found.items() if not name.endswith("-dbgsym")}


def field(package, name):
    return subprocess.check_output(["dpkg-deb", "--field", package, name], text=True).strip()


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tree = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        for name, package in packages().items():
            subprocess.run(["dpkg-deb", "--extract", package, cls.tree / name], check=True)
        files = [path for path in cls.tree.rglob("*") if path.is_file() and not path.is_symlink()]
        cls.elf = [path for path in files if path.read_bytes()[:4] == b"\x7fELF"]

    def test_there_is_one_of_each(self):
        self.assertEqual(set(packages()), NAMES)

    def test_their_version_is_the_trees(self):
        for package in packages().values():
            self.assertEqual(field(package, "Version").rpartition("-")[0], source.version())

    def test_few_overrides_of_lintian(self):
        files = [path for path in self.tree.rglob("usr/share/lintian/overrides/*") if path.is_file()]
        overrides = {line for path in files for line in path.read_text().splitlines() if line[:1] != "#"}
        self.assertLessEqual(len(overrides), OVERRIDES_MAX)

    def test_the_server_is_small(self):
        self.assertLess(packages()["tundish"].stat().st_size, SERVER_BYTES_MAX)

    def test_libraries_are_found_without_a_runpath(self):
        self.assertGreater(len(self.elf), 7)
        for path in self.elf:
            said = subprocess.check_output(["readelf", "--dynamic", path], text=True)
            self.assertNotRegex(said, "RUNPATH|RPATH", path)

    def test_no_file_names_the_folder_where_it_was_built(self):
        for path in self.elf:
            self.assertNotIn(str(deb.WORK).encode(), path.read_bytes(), path)

    def test_every_program_has_a_page_and_completion(self):
        programs = {path.name for path in self.tree.glob("*/usr/bin/*")}
        self.assertEqual(programs, {"tundish", "tundish-admin", "tundish-launch"})
        pages = {path.name for path in self.tree.glob("*/usr/share/man/man1/*")}
        self.assertEqual(pages, {f"{name}.1.gz" for name in programs})
        completed = {path.name for path in self.tree.glob("*/usr/share/bash-completion/completions/*")}
        self.assertEqual(completed, programs)
        self.assertTrue([*self.tree.glob("*/usr/share/zsh/vendor-completions/_tundish")])
        fish = {path.stem for path in self.tree.glob("*/usr/share/fish/vendor_completions.d/*.fish")}
        self.assertEqual(fish, programs)

    def test_each_library_says_since_when_it_has_a_function(self):
        for name in ("libtundish0", "libtundish-transform0", "libtundish-cuda0"):
            members = subprocess.check_output(["dpkg-deb", "--info", packages()[name]], text=True)
            self.assertIn(" symbols ", members)

    def test_built_again_they_are_equal(self):
        """ccache, where there is one, compiles anew what the folder's name comes into."""
        with tempfile.TemporaryDirectory(prefix="tundish-again-") as folder:
            deb.build(Path(folder) / "elsewhere", DEB_BUILD_OPTIONS="noautodbgsym")
            again = {name: path.read_bytes() for name, path in packages(Path(folder) / "elsewhere").items()}
        first = {name: path.read_bytes() for name, path in packages().items()}
        self.assertEqual(set(first), set(again))
        self.assertEqual([name for name in first if first[name] != again[name]], [])


class Life(unittest.TestCase):
    """Installed, tried, upgraded, removed and purged in a root that has nothing else."""

    def test_from_installing_to_purging(self):
        self.root = BareRoot()
        self.addCleanup(self.root.remove)
        self.root.put(*packages().values(), to="/packages/now")
        self.root.put(*earlier(Path(self.root.folder)), to="/packages/earlier")
        self.root.put(REPOSITORY / "README.md", REPOSITORY / "docs", to="/tree")
        self.root.put(REPOSITORY / "debian", to="/tree")
        self.root.put(REPOSITORY / "tests/operations/service_in_root.sh", to="/tree")
        before = self.files()
        self.install("earlier")
        self.root.run("apt-get install -qq --no-install-recommends gcc libc6-dev pkg-config")
        self.try_it()
        # As operators do it: while servers run, and trainers read.
        self.root.run(f"/tree/service_in_root.sh '{self.installing('now')}'")
        self.assert_version(field(packages()["tundish"], "Version"))
        self.try_it()
        self.root.run("/tree/service_in_root.sh")
        self.remove(before)

    def install(self, version):
        self.root.run(self.installing(version))
        expected = field(packages()["tundish"], "Version")
        self.assert_version(expected if version == "now" else below(expected))

    @staticmethod
    def installing(version):
        """All but the module for MPI, which is as large as the rest."""
        names = " ".join(f"./{name}_*.deb" for name in sorted(NAMES - {"tundish-mpi"}))
        return f"cd /packages/{version}; apt-get install -qq --no-install-recommends {names}"

    def assert_version(self, version):
        said = self.root.run("dpkg-query --show --showformat '${Version} ${Status}\n' tundish").stdout
        self.assertEqual(said, f"{version} install ok installed\n")

    def try_it(self):
        """What debian/tests has for Debian's own test runner."""
        names = re.findall("Tests: (.*)", (REPOSITORY / "debian/tests/control").read_text())
        self.assertEqual(sorted(names), ["python", "trainer"])
        for name in names:
            self.root.run(
                f"export AUTOPKGTEST_TMP=$(mktemp -d); cd /tree; debian/tests/{name}; "
                'rm -r "$AUTOPKGTEST_TMP"; ls -A /dev/shm; rm -rf "$HOME/.cache"'
            )

    def remove(self, before):
        names = " ".join(sorted(NAMES - {"tundish-mpi"}))
        self.root.run(f"apt-get remove -qq {names}")
        self.assertNotEqual(self.root.run("command -v tundish", check=False).returncode, 0)
        self.root.run(f"dpkg --purge {names}")
        left = {path for path in self.files() - before if "tundish" in path}
        self.assertEqual(left, set())
        for name in sorted(NAMES):
            self.assertNotEqual(self.root.run(f"dpkg-query --status {name}", check=False).returncode, 0)

    def files(self):
        """All of the system's own, but for the records that apt and dpkg keep of the past."""
        left_out = "-path /packages -o -path /tree -o -path /proc -o -path /sys -o -path /var/log"
        return set(self.root.run(f"find / \\( {left_out} \\) -prune -o -print").stdout.splitlines())


def below(version):
    """The version of the packages of `earlier`."""
    return re.sub(r"1$", "0", version)


def earlier(folder):
    """The same packages as a version before, with the programs of the last release."""
    version = field(packages()["tundish"], "Version")
    recorded = REPOSITORY / "tests" / "system" / "last_release" / f"{platform.machine()}.tar.xz"
    if recorded.exists():
        with tarfile.open(recorded) as archive:
            archive.extractall(folder / "recorded")
    made = []
    for name, package in packages().items():
        tree = folder / "earlier"
        subprocess.run(["dpkg-deb", "--raw-extract", package, tree], check=True)
        put_recorded(folder / "recorded", tree)
        control = tree / "DEBIAN" / "control"
        control.write_text(control.read_text().replace(version, below(version)))
        made.append(folder / package.name.replace(version, below(version)))
        command = ["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", tree, made[-1]]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(tree)
    return made


def put_recorded(recorded, tree):
    """Replace the server of a package's tree by the recorded one. The library stays, since the package for Python
    calls functions that the recorded one has not."""
    for path in tree.glob("usr/bin/tundish") if (recorded / "tundish").exists() else ():
        shutil.copy(recorded / "tundish", path)


if __name__ == "__main__":
    unittest.main()
