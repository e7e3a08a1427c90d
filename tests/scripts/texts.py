"""What the texts of the tree cite, and whether it is there: used by test_texts.py.

A text cites in backticks, inline or in a block. Of an inline citation every word is looked up: a path must
lead to a file (from the tree's top, the text's own folder, or `server/`), an option and any other word
must stand in a source. Capitals in a path are a placeholder. Of a block without a language (a diagram)
only paths and names with an underscore are looked up, of a shell block the commands and their options.
"""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("server", "sdk", "admin", "docs", "scripts", "tests", ".ci")
QUOTED = ("tests/conformance/cases", "tests/fuzz/corpus", "tests/bench/RESULTS.md", "tests/bench/notes")

_SPAN = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\]\((?!https?:)([^)\s]+)")
_FENCE = re.compile(r"^\s*```(\w*)$")
_OPTION = re.compile(r"--[a-z][a-z0-9-]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FILE = re.compile(r"[\w.*-]+\.(?:c|h|cc|cu|def|py|md|build|yml|yaml|json|js|css|map|txt|so|toml)(?!\w)")
_PATH = re.compile(r"/?[\w.*-]+(?:/[\w.*-]*)+")
_PLACEHOLDER = re.compile(r"[A-Z]{2,}|(?<![A-Za-z])[A-Z](?![A-Za-z])|<\w+>")
# Commands that a user's shell has, whether this machine does or not.
_OF_USERS = ("apt", "cc", "curl", "mkdir", "openssl", "pip", "python", "rm", "tar")
# Files that a user makes, and folders that a build or a run does.
_MADE = re.compile(r"^(?:\./|build(?:-\w+)?(?:/|$)|analysis/|share/tundish/|photos/)")
_MADE_FILES = ("trainer.c", "make_photos.py", "libmine.so", "clicks.yaml", "rows.tfrecord", "libop_lists.so", "rows.py")


def texts():
    """All texts of the tree that its authors write."""
    found = [*ROOT.glob("*.md")]
    for folder in FOLDERS:
        found += (ROOT / folder).rglob("*.md")
    names = (path.relative_to(ROOT).as_posix() for path in found)
    return sorted(name for name in names if not name.startswith(QUOTED))


def complaints_of(name, text):
    """A line for each thing that `text`, the file `name`, cites and that is not there."""
    language, number, theirs = None, 0, False
    folder = (ROOT / name).parent
    spans = []
    for number, line in enumerate(text.splitlines(), 1):
        fence = _FENCE.match(line)
        if fence:
            language = fence.group(1) if language is None else None
        elif language is None:
            # A table of what others call it: their words are not ours.
            theirs = line.startswith("| there |") or theirs and line.startswith("|")
            line = line.split(" | ", 1)[-1] if theirs else line
            spans += [(number, _in_span, span) for span in _SPAN.findall(line)]
            spans += [(number, _in_link, link) for link in _LINK.findall(line)]
        elif language == "sh":
            spans.append((number, _in_shell, line))
        elif language == "":
            spans.append((number, _in_diagram, line))
    for number, look, cited in spans:
        for what in look(cited, folder):
            yield f"{name}:{number}: {what} is not in the tree"


def _in_link(link, folder):
    path, _, heading = link.partition("#")
    if path and not (folder / path).exists():
        return (path,)
    return (link,) if heading and path and heading not in _headings(folder / path) else ()


@cache
def _headings(path):
    """What the headings of a text are called in links."""
    titles = re.findall(r"(?m)^#+ +(.+)$", path.read_text())
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def _in_span(span, folder):
    rest = span
    for path in _paths(span):
        rest = rest.replace(path, " ")
        if not _is_there(path, folder):
            yield path
    for option in _OPTION.findall(rest):
        if option not in _options():
            yield option
    for word in _NAME.findall(_OPTION.sub(" ", rest)):
        if not _is_word(word):
            yield word


def _in_diagram(line, folder):
    for path in _paths(line):
        if "/" in path and not _is_there(path, folder):
            yield path
    for word in _NAME.findall(line):
        if "_" in word and word not in _words():
            yield word


def _in_shell(line, folder):
    command = line.split("#")[0]
    words = [word for word in command.split() if not re.fullmatch(r"\w+=\S*", word)]
    if not words:
        return
    first = words[0]
    if "/" in first:
        if not _is_there(first, folder):
            yield first
    elif first not in _programs() and first not in _packages() and first not in _OF_USERS:
        yield first
    if first == "tundish" and words[1] not in _commands():
        yield f"tundish {words[1]}"
    if first in _programs() or first.startswith(("scripts/", "tests/")):
        for option in _OPTION.findall(command):
            if option not in _options():
                yield option


def _is_word(word):
    """content_NAME is any name that begins so, tnd_ a prefix."""
    if word in _words() or _PLACEHOLDER.fullmatch(word):
        return True
    begin = re.match(r"[a-z_]+_(?=[A-Z]+$|$)", word)
    return begin is not None and any(known.startswith(begin.group()) for known in _words())


def _paths(text):
    for found in _PATH.findall(text) + _FILE.findall(_PATH.sub(" ", text)):
        yield found.rstrip(".")


def _is_there(path, folder):
    if _MADE.match(path) or path in _MADE_FILES:
        return True
    if path.startswith("/") or "/" not in path and not _FILE.fullmatch(path):
        return path in _source()
    pattern = _PLACEHOLDER.sub("*", path).rstrip("/")
    places = (ROOT, folder, ROOT / "server", ROOT / "sdk", ROOT / "tests", ROOT / "sdk/include")
    if any(next(place.glob(pattern), None) for place in places):
        return True
    return "/" not in path and any(Path(name).match(pattern) for name in _files()) or path in _source()


@cache
def _files():
    return {path.relative_to(ROOT).as_posix(): path for top in FOLDERS for path in (ROOT / top).rglob("*")
            if path.is_file() and path.suffix != ".md" and "__pycache__" not in path.parts
            and not path.relative_to(ROOT).as_posix().startswith(QUOTED)
            and path.name not in ("texts.py", "test_texts.py")}


@cache
def _source():
    more = (ROOT / "meson.build", ROOT / "meson_options.txt", ROOT / ".clang-format")
    return "\n".join(path.read_text("utf-8", "replace") for path in (*_files().values(), *more))


@cache
def _words():
    return set(_NAME.findall(_source())) | {part for name in _files() for part in _NAME.findall(name)}


@cache
def _options():
    """As a program documents them, or as its parser has them."""
    return set(_OPTION.findall(_source()))


@cache
def _programs():
    return {"tundish", "tundish-launch", "tundish-admin"}


@cache
def _packages():
    """They need not be here: some tests bring those that only they need."""
    return set((ROOT / "scripts/setup").read_text().split())


@cache
def _commands():
    stem = "server/commands/command_"
    return {name[len(stem):-2] for name in _files() if name.startswith(stem)}
