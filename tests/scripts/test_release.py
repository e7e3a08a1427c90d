"""scripts/release refuses a tree that is not ready, says all that is wrong, and tags only what passed."""

import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("meson.build", "pyproject.toml", "sdk/include/tundish/tundish.h", "admin/kubernetes/daemonset.yaml",
          "debian/libtundish0.symbols", "debian/libtundish-cuda0.symbols", "docs/addresses.md", "debian/control", "debian/copyright", "scripts/release")  # fmt: skip
ADDRESSES = ("docs/addresses.md", "debian/control", "debian/copyright")
STUBS = ("scripts/test", "scripts/package", "tests/system/last_release/record")
CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n## [{version}] - 2026-01-31\n\n### Added\n\n- A thing.\n"
VERSION = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text())[1]
NEXT = "9.0.0"


class Release(unittest.TestCase):
    """In a repository with this tree's files that name a version, and stand-ins for what takes long."""

    def setUp(self):
        self.root = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name in COPIED:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        for name in STUBS:
            self.put(name, f'#!/bin/sh\necho {name} "$@" >>../ran\n'.replace("../ran", str(self.root / ".git/ran")))
            (self.root / name).chmod(0o755)
        self.put("CHANGELOG.md", CHANGELOG.format(version=VERSION))
        for name in ADDRESSES:
            text = (self.root / name).read_text()
            self.put(name, text.replace("not set yet", "https://tundish.test").replace(".invalid", ".test"))
        self.git("init", "--quiet")
        self.git("config", "user.name", "releaser")
        self.git("config", "user.email", "releaser@tundish.invalid")
        self.commit()

    def put(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def edit(self, name, old, new):
        text = (self.root / name).read_text()
        self.assertIn(old, text)
        self.put(name, text.replace(old, new))

    def git(self, *words):
        command = ["git", *words]
        return subprocess.run(command, cwd=self.root, check=True, capture_output=True, text=True).stdout

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "Go on")

    def release(self, *words):
        command = [self.root / "scripts" / "release", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=600)

    def ran(self):
        path = self.root / ".git" / "ran"
        return path.read_text().splitlines() if path.exists() else []

    def assert_refused(self, *sentences, version=VERSION):
        done = self.release("--dry-run", version)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done)
        self.assertEqual(done.stderr.splitlines(), [f"release: {sentence}" for sentence in sentences])
        self.assertEqual(self.ran(), [])

    def bump(self, version):
        """Everything that names the version, but debian's symbols, which stay what they are."""
        for name in COPIED[:2] + COPIED[3:4]:
            self.put(name, (self.root / name).read_text().replace(VERSION, version))
        for word, number in zip(("MAJOR", "MINOR", "PATCH"), version.split(".")):
            text = (self.root / COPIED[2]).read_text()
            self.put(COPIED[2], re.sub(rf"(VERSION_{word}) \d+", rf"\1 {number}", text))
        self.put("CHANGELOG.md", CHANGELOG.format(version=version))

    def test_what_passes_is_packed_and_tagged_with_what_is_said_of_it(self):
        done = self.release(VERSION)
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(self.ran(), [
            "scripts/test", "scripts/package --deps deb", "scripts/package --deps wheel",
            "scripts/package --deps image", f"tests/system/last_release/record v{VERSION}",
        ])  # fmt: skip
        self.assertIn("- A thing.", self.git("tag", "--list", "-n9", f"v{VERSION}"))

    def test_a_dry_run_does_nothing(self):
        done = self.release("--dry-run", VERSION)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("release: scripts/test\n", done.stdout)
        self.assertIn(f"release: git tag --annotate v{VERSION}\n", done.stdout)
        self.assertEqual((self.ran(), self.git("tag")), ([], ""))

    def test_what_fails_its_tests_is_not_tagged(self):
        self.put("scripts/test", "#!/bin/sh\nexit 1\n")
        self.commit()
        done = self.release(VERSION)
        self.assertEqual(done.returncode, 1, done)
        self.assertEqual(done.stderr, f"release: scripts/test failed: {VERSION} is not released\n")
        self.assertEqual((self.ran(), self.git("tag")), ([], ""))

    def test_addresses_that_nobody_has_filled_in(self):
        text = (self.root / "docs/addresses.md").read_text()
        self.put("docs/addresses.md", text.replace("https://tundish.test", "not set yet", 1))
        self.edit("debian/control", "tundish.test", "tundish.invalid")
        self.commit()
        self.assert_refused(
            "docs/addresses.md: no address is set for a clone of the source",
            "debian/control: the maintainers' address is not set",
        )

    def test_a_changed_tree(self):
        self.put("new", "")
        self.edit("pyproject.toml", "tundish", "other")
        self.edit("pyproject.toml", "other-server", "tundish-server")
        self.assert_refused("the tree is not clean: commit pyproject.toml, new")

    def test_every_place_that_has_another_version_is_named(self):
        self.edit("CHANGELOG.md", VERSION, NEXT)
        self.commit()
        self.assert_refused(
            *(f"{name}: the version is {VERSION}, not {NEXT}"
              for name in (COPIED[0], COPIED[1], COPIED[3], COPIED[2])),
            version=NEXT,
        )  # fmt: skip
        self.bump(NEXT)
        self.commit()
        self.assertEqual(self.release("--dry-run", NEXT).returncode, 0)

    def test_a_changelog_without_the_version(self):
        self.edit("CHANGELOG.md", f"[{VERSION}]", "[0.0.1]")
        self.commit()
        self.assert_refused(f"CHANGELOG.md: the section after Unreleased must be that of {VERSION}")

    def test_a_changelog_that_is_not_ready(self):
        self.edit("CHANGELOG.md", "## [Unreleased]\n", "## [Unreleased]\n\n- Another.\n")
        self.edit("CHANGELOG.md", " - 2026-01-31\n\n### Added\n\n- A thing.\n", "\n")
        self.commit()
        self.assert_refused(
            f"CHANGELOG.md: put what is under Unreleased under {VERSION}, or take it out",
            f"CHANGELOG.md: '## [{VERSION}]' must end with a date: - 2026-01-31",
            f"CHANGELOG.md: nothing is said of {VERSION}",
        )

    def test_a_version_that_is_there_or_less_than_the_last(self):
        self.git("tag", f"v{VERSION}")
        self.assert_refused(f"the tag v{VERSION} is there already")
        self.git("tag", "--delete", f"v{VERSION}")
        self.git("tag", f"v{NEXT}")
        self.assertIn(f"{VERSION} is less than the last release, {NEXT}", self.release(VERSION).stderr)

    def test_a_symbol_that_is_there_since_another_version(self):
        self.git("tag", f"v{VERSION}")
        self.bump(NEXT)
        symbols = "debian/libtundish0.symbols"
        self.edit(symbols, f" tundish_close@TUNDISH_0 {VERSION}", f" tundish_close@TUNDISH_0 {NEXT}")
        self.put(symbols, (self.root / symbols).read_text() + f" tundish_new@TUNDISH_0 {VERSION}\n")
        self.commit()
        self.assert_refused(
            f"{symbols}: tundish_close@TUNDISH_0 is there since {VERSION}, not {NEXT}",
            f"{symbols}: tundish_new@TUNDISH_0 is there since {NEXT}, not {VERSION}",
            version=NEXT,
        )
        self.edit(symbols, f" tundish_close@TUNDISH_0 {NEXT}", f" tundish_close@TUNDISH_0 {VERSION}")
        self.edit(symbols, f" tundish_new@TUNDISH_0 {VERSION}", f" tundish_new@TUNDISH_0 {NEXT}")
        self.commit()
        self.assertEqual(self.release("--dry-run", NEXT).returncode, 0)

    def test_what_is_no_version(self):
        done = self.release("v1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'v1' is not a version such as 1.2.3", done.stderr)


if __name__ == "__main__":
    unittest.main()
