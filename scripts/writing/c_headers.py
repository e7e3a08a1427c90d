"""A public header as a page: each comment as prose, what it stands above as code."""

import re

from .reference import text_of

_COMMENT = re.compile(r"/\*(.*?)\*/", re.DOTALL)


def page(path):
    lines = [f"# {path.name}", ""]
    for block in _blocks(path.read_text()):
        if re.fullmatch(r"(#\w.*\n?|extern \"C\" \{\n?|\}\n?)*", block):
            continue  # guards and includes
        comment = _COMMENT.match(block)
        declared = block[comment.end():] if comment else block
        name = _name_of(declared)
        if name:
            lines += [f"## {name}", ""]
        if comment:
            lines += [_prose(comment[1]), ""]
        if declared.strip():
            lines += ["```c", declared.strip("\n"), "```", ""]
    return "\n".join(lines)


def _blocks(text):
    """Paragraphs of the header: a comment and what follows it, up to an empty line outside of braces."""
    depth, block = 0, []
    in_comment = False
    for line in text.splitlines():
        in_comment = (in_comment or "/*" in line) and "*/" not in line.rpartition("/*")[2]
        depth += line.count("{") - line.count("}") if not line.lstrip().startswith("*") else 0
        if line.strip() or depth > 0 or in_comment:
            block.append(line)
        elif block:
            yield "\n".join(block)
            block = []
    if block:
        yield "\n".join(block)


def _name_of(declared):
    """The first name that is declared: of a type, a function or a macro."""
    plain = _COMMENT.sub("", declared)
    found = re.search(r"typedef (?:enum|struct|union) (\w+)|(\w+)\s*\([^)]*\)[^;{]*;|^#define (TUNDISH_\w+_INIT)", plain,
                      re.MULTILINE)  # fmt: skip
    return next((name for name in found.groups() if name), None) if found else None


def _prose(comment):
    """The comment without its stars. Indented lines after an empty one are code."""
    lines = [re.sub(r"^ ?\*? ?", "", line) for line in comment.strip("\n").splitlines()]
    parts, code = [], []
    for line in [*lines, "."]:
        if line.startswith("    ") and (code or not parts or not parts[-1]) or code and not line.strip():
            code.append(line.removeprefix("    "))
            continue
        parts += _fenced(code)
        code = []
        if re.match(r"[A-Z]\w+: ", line):
            parts.append("")
        parts.append(text_of(line.strip()))
    return "\n".join(parts[:-1])


def _fenced(code):
    return ["", "```c", *"\n".join(code).rstrip().splitlines(), "```", ""] if code else []
