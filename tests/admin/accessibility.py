"""What somebody who does not see the page, or uses no mouse, needs of it: asked of Chromium itself.

The accessibility tree says what a screen reader is told; the style of each text says its contrast; the
Tab key says where the focus goes, and whether it is seen there."""

import json

CONTROLS = {"button", "link", "textbox", "combobox", "checkbox", "radio", "slider", "DisclosureTriangle",
            "searchbox", "switch", "tab", "menuitem"}
NAMED = CONTROLS | {"img", "image", "table", "region", "group", "heading", "figure", "meter", "status"}
UNNAMED_ARE_FINE = {"figure", "group", "status", "region"}
CONTRAST, CONTRAST_LARGE = 4.5, 3.0  # WCAG 2.2, level AA

# Each text with what it is drawn on: [selector, text, contrast, is it large]. Backgrounds that let
# through what is below are mixed with it; opacity of all that is around counts.
CONTRASTS = """
(() => {
  const parse = (text) => {
    const found = text.match(/rgba?\\(([^)]*)\\)/);
    if (!found) return [0, 0, 0, 0];
    const [r, g, b, a] = found[1].split(/[ ,/]+/).map(Number);
    return [r, g, b, a === undefined || Number.isNaN(a) ? 1 : a];
  };
  const mix = (over, under) => over.slice(0, 3).map((c, i) => c * over[3] + under[i] * (1 - over[3]));
  const light = (c) => c.map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const around = (node) => { const all = []; for (; node; node = node.parentElement) all.unshift(node); return all; };
  const behind = (nodes) => nodes.reduce((under, node) =>
    mix(parse(getComputedStyle(node).backgroundColor), under), [255, 255, 255]);
  const name = (node) => node.tagName.toLowerCase() + (node.id ? `#${node.id}` : "") +
    (node.getAttribute("class") ? `.${node.getAttribute("class").trim().replace(/\\s+/g, ".")}` : "");
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
    if (!text || !node.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })) continue;
    if (node.closest("noscript, script, style, option")) continue;
    const box = node.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) continue; // for screen readers alone
    const style = getComputedStyle(node), nodes = around(node);
    const svg = node.closest("svg");
    const under = behind(svg ? around(svg) : nodes);
    const rect = svg && node.closest("g")?.querySelector("rect.box");
    const fill = rect ? getComputedStyle(rect).fill : null;
    const back = fill && fill !== "none" ? mix(parse(fill), under) : under;
    const ink = parse(svg ? style.fill : style.color);
    ink[3] *= nodes.reduce((all, one) => all * Number(getComputedStyle(one).opacity), 1);
    const size = parseFloat(style.fontSize), bold = Number(style.fontWeight) >= 700;
    found.push([name(node), text.slice(0, 40), ratio(mix(ink, back), back), size >= 24 || (bold && size >= 18.66)]);
  }
  return JSON.stringify(found);
})()
"""

FOCUSED = """
(() => {
  const node = document.activeElement, style = getComputedStyle(node), box = node.getBoundingClientRect();
  return JSON.stringify({
    name: node === document.body ? "" : node.tagName.toLowerCase() + (node.id ? "#" + node.id : "") + " " +
      (node.getAttribute("aria-label") ?? node.textContent ?? "").trim().slice(0, 40),
    outline: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 && style.outlineColor,
    top: box.top + scrollY, seen: box.width > 0 && box.height > 0 &&
      box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
    again: (window.stops ??= []).includes(node),
    backwards: window.stops.length > 0 && node !== document.body && Boolean(
      window.stops[window.stops.length - 1].compareDocumentPosition(node) & Node.DOCUMENT_POSITION_PRECEDING),
    number: window.stops.push(node),
  });
})()
"""


def tree(page):
    """[(role, name, properties)] of all that is not ignored."""
    page.ask("Accessibility.enable")
    nodes = page.ask("Accessibility.getFullAXTree")["nodes"]
    return [(node["role"]["value"], node.get("name", {}).get("value", ""),
             {one["name"]: one["value"].get("value") for one in node.get("properties", [])})
            for node in nodes if not node.get("ignored") and "role" in node]


def unnamed(page):
    """Controls and parts without a name, and names that several controls share."""
    nodes = tree(page)
    found = [f"{role} without a name" for role, name, _ in nodes
             if role in NAMED - UNNAMED_ARE_FINE and not name.strip()]
    controls = [(role, name) for role, name, _ in nodes if role in CONTROLS]
    found += [f"two of {role} {name!r}" for role, name in set(controls) if controls.count((role, name)) > 1]
    return found


def headings(page):
    """Levels that are left out: h1 is followed by h2, and so on."""
    levels = [properties.get("level") for role, _, properties in tree(page) if role == "heading"]
    steps = zip([0, *levels], levels, strict=False)
    return [f"heading {after} after {before}" for before, after in steps if after > before + 1]


def pale(page):
    """Texts that are hard to read on what they stand on."""
    texts = json.loads(page.value(CONTRASTS))
    assert len(texts) > 8, texts
    return [f"{selector} {text!r}: {contrast:.2f}" for selector, text, contrast, large in texts
            if contrast < (CONTRAST_LARGE if large else CONTRAST)]


def press(page, key, **more):
    for kind in ("keyDown", "keyUp"):
        page.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, **more)


def focused(page):
    return json.loads(page.value(FOCUSED))


def walk(page, steps=400):
    """Where Tab goes from the top of the page, until it leaves it."""
    page.value("document.activeElement.blur(); window.stops = []")
    found = []
    for _ in range(steps):
        press(page, "Tab", windowsVirtualKeyCode=9)
        now = focused(page)
        if not now["name"] or now["again"]:
            return found
        found.append(now)
    raise AssertionError(f"the focus never leaves the page: {found[-3:]}")


def hidden_or_out_of_order(stops):
    """Stops without a visible focus, and those that come before an earlier part of the page."""
    found = [f"{stop['name']}: no outline" for stop in stops if not stop["outline"]]
    found += [f"{stop['name']}: not on the screen" for stop in stops if not stop["seen"]]
    found += [f"{after['name']} after {before['name']}" for before, after in zip(stops, stops[1:], strict=False)
              if after["backwards"]]
    return found
