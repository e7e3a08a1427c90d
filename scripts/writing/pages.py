"""The texts of the tree as pages: the same paths, with links that lead to pages."""

import os
import re

TEXTS = ("docs/**/*.md", "sdk/**/*.md", "admin/**/*.md", "server/README.md", "tests/README.md", "CONTRIBUTING.md",
         "CHANGELOG.md")  # fmt: skip

# The pages of the index, part by part. Every page stands in one of them: Sphinx complains otherwise.
PARTS = {
    "First steps": ["docs/install", "docs/tutorial", "docs/concepts", "docs/gallery/index", "docs/faq", "docs/addresses"],
    "How to": ["docs/images", "docs/learning", "docs/your-own-code", "docs/groups", "docs/resume", "docs/nodes",
               "docs/files-at-urls", "docs/gpu", "docs/performance", "docs/limits"],
    "Coming from": ["docs/coming-from", "sdk/python/TF_DATA", "sdk/python/porting"],
    "Programs": ["sdk/python/README", "sdk/README"],
    "Operating": ["docs/commands", "admin/README", "admin/runbook", "admin/slurm/README"],
    "Reference": ["reference/stages/index", "reference/pipeline", "reference/expressions", "reference/commands",
                  "docs/environment", "reference/metrics", "reference/python", "reference/headers"],
    "Changing it": ["server/README", "CONTRIBUTING", "tests/README", "CHANGELOG"],
}  # fmt: skip

_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])+)\]\((?!https?:|#)([^)\s]+)\)")
_PICTURE = re.compile(r'<picture>\s*<source [^>]*srcset="([^"]+)">\s*<img alt="([^"]*)" src="([^"]+)">\s*</picture>')


def texts(root):
    """{path: text} of the pages that authors write."""
    found = {path.relative_to(root).as_posix() for pattern in TEXTS for path in root.glob(pattern)}
    written = {name: _page(name, (root / name).read_text(), found) for name in sorted(found)}
    written["index.md"] = _page("README.md", (root / "README.md").read_text(), found) + _toctrees(written)
    return written


def configuration(version):
    return f"""project = "Tundish"
release = version = "{version}"
html_title = "Tundish {version}"
copyright = "the authors of Tundish, Apache-2.0"
extensions = ["myst_parser"]
myst_heading_anchors = 4
html_theme = "furo"
html_show_sourcelink = html_copy_source = False
smartquotes = False
suppress_warnings = ["misc.highlighting_failure", "myst.header"]
"""


def _toctrees(written):
    parts = []
    for title, names in PARTS.items():
        here = [name for name in names if name.startswith("reference/") or f"{name}.md" in written]
        parts.append(f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n" + "\n".join(here) + "\n```\n")
    return "".join(parts)


def _page(name, text, found):
    folder = os.path.dirname(name)

    def link(match):
        words, target = match.groups()
        path, hash_, heading = target.partition("#")
        path = os.path.normpath(os.path.join(folder, path))
        if path == "README.md":
            path = "index.md"
        elif path.startswith("sdk/include/tundish/") and path.endswith(".h"):
            path = f"reference/{os.path.basename(path)}.md"
        elif path not in found and not path.startswith("reference/"):
            return words
        return f"[{words}]({os.path.relpath(path, folder or '.')}{hash_}{heading})"

    # Code is not to be touched: only what stands between fences.
    pieces = re.split(r"(?ms)(^ *```.*?^ *```$)", text)
    for index in range(0, len(pieces), 2):
        pieces[index] = _PICTURE.sub(_image, _LINK.sub(link, pieces[index]))
    return "".join(pieces)


def _image(match):
    dark, words, light = match.groups()
    return "\n".join(f"```{{image}} {path}\n:class: only-{kind}\n:alt: {words}\n```"
                     for kind, path in (("light", light), ("dark", dark)))  # fmt: skip
