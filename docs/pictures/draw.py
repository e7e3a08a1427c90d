#!/usr/bin/env python3
"""Draw the pictures of the manual as SVG, light and dark: docs/pictures/draw.py [--check]

Each text beside this program is a picture. Its lines are

    size WIDTH HEIGHT "DESCRIPTION"            first; the description is for those who cannot see it
    frame X Y WIDTH HEIGHT "TITLE"             a dashed frame, its title at the top
    box NAME X Y WIDTH HEIGHT KIND "TITLE" ["LINE" ...]   KIND: plain, strong, or slots
    arrow NAME NAME ["LABEL"]                  from the middle of a side to the nearest side
    text X Y "TEXT"

and `#` begins a comment. --check fails if a picture in the tree is not what its text draws.
"""

import shlex
import sys
from html import escape
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PALETTES = {
    "light": {"ink": "#1b1f24", "dim": "#57606a", "plain": "#f3f5f8", "strong": "#dbe9ff", "edge": "#8c96a3",
              "accent": "#0b5cad", "slots": "#e3f4e4"},
    "dark": {"ink": "#e8ecf1", "dim": "#a3adb8", "plain": "#20262e", "strong": "#17365c", "edge": "#6b7684",
             "accent": "#77b4f5", "slots": "#1d3a24"},
}  # fmt: skip


def draw(text, palette):
    """The SVG of a picture's text."""
    boxes, parts, head = {}, [], ""
    for line in text.splitlines():
        word, *rest = shlex.split(line, comments=True) or [""]
        if word == "size":
            head = _head(*rest)
        elif word == "frame":
            parts.append(_frame(palette, rest))
        elif word == "box":
            boxes[rest[0]] = tuple(map(float, rest[1:5]))
            parts.append(_box(palette, boxes[rest[0]], *rest[5:]))
        elif word == "arrow":
            parts.append(_arrow(palette, boxes[rest[0]], boxes[rest[1]], *rest[2:]))
        elif word == "text":
            parts.append(_words(float(rest[0]), float(rest[1]), rest[2], palette["dim"], "middle"))
        elif word:
            raise ValueError(f"there is no {word!r}: {line}")
    marker = f'<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">' \
             f'<path d="M0 0 L8 4 L0 8 z" fill="{palette["accent"]}"/></marker>'
    return "\n".join([head, f"<defs>{marker}</defs>", *parts, "</svg>", ""])


def _head(width, height, description):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" font-family="system-ui, sans-serif" role="img">\n<title>{escape(description)}</title>')  # fmt: skip


def _frame(palette, rest):
    x, y, width, height = map(float, rest[:4])
    edge = f'fill="none" stroke="{palette["edge"]}" stroke-dasharray="5 4"'
    title = _words(x + 12, y + 20, rest[4], palette["dim"], "start")
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="10" {edge}/>\n{title}'


def _box(palette, place, kind, title, *lines):
    x, y, width, height = place
    edge = palette["accent"] if kind == "strong" else palette["edge"]
    parts = [f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="7" fill="{palette[kind]}" '
             f'stroke="{edge}"/>']  # fmt: skip
    top = y + height / 2 - 9 * len(lines) + 5
    parts.append(_words(x + width / 2, top, title, palette["ink"], "middle", "600"))
    for number, line in enumerate(lines, 1):
        parts.append(_words(x + width / 2, top + 18 * number, line, palette["dim"], "middle"))
    return "\n".join(parts)


def _arrow(palette, first, second, label=""):
    (x1, y1), (x2, y2) = _ends(first, second)
    line = (f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{palette["accent"]}" '
            f'stroke-width="1.6" marker-end="url(#tip)"/>')  # fmt: skip
    words = _words((x1 + x2) / 2, (y1 + y2) / 2 - 7, label, palette["dim"], "middle") if label else ""
    return line + words


def _ends(first, second):
    """Where an arrow leaves one box and meets the other: at sides that face each other."""
    middles = [(x + width / 2, y + height / 2) for x, y, width, height in (first, second)]
    if first[0] + first[2] <= second[0]:
        return (first[0] + first[2], middles[0][1]), (second[0], middles[1][1])
    if second[0] + second[2] <= first[0]:
        return (first[0], middles[0][1]), (second[0] + second[2], middles[1][1])
    if first[1] < second[1]:
        return (middles[0][0], first[1] + first[3]), (middles[0][0], second[1])
    return (middles[0][0], first[1]), (middles[0][0], second[1] + second[3])


def _words(x, y, text, colour, anchor, weight="400"):
    return (f'<text x="{x:g}" y="{y:g}" font-size="13" font-weight="{weight}" fill="{colour}" '
            f'text-anchor="{anchor}">{escape(text)}</text>')  # fmt: skip


def main():
    stale = []
    for source in sorted(FOLDER.glob("*.txt")):
        for name, palette in PALETTES.items():
            path = FOLDER / f"{source.stem}-{name}.svg"
            drawn = draw(source.read_text(), palette)
            if sys.argv[1:] != ["--check"]:
                path.write_text(drawn)
            elif not path.exists() or path.read_text() != drawn:
                stale.append(path.name)
    if stale:
        sys.exit(f"not as their texts draw them: {', '.join(stale)}; run docs/pictures/draw.py")


if __name__ == "__main__":
    main()
