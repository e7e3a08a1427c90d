"""The Python package as a page: what its modules document, read without importing them."""

import ast
import inspect
import re

from .reference import text_of

# Modules and what they are for. `tundish` itself has the names that its __init__ gives.
MODULES = {"torch": "tundish.torch", "jax": "tundish.jax", "keras": "tundish.keras", "tensorflow": "tundish.tensorflow",
           "lightning": "tundish.lightning", "transformers": "tundish.transformers", "rows": "tundish.rows",
           "data/dataset": "tundish.data"}  # fmt: skip


def page(folder):
    lines = ["# Python", "", "What the docstrings say: `help(tundish)` prints the same.", ""]
    lines += ["## tundish", "", *_prose(ast.get_docstring(_tree(folder / "__init__.py")))]
    for module, names in _exported(folder).items():
        path = folder / f"{module}.py"
        tree = _tree(path if path.exists() else folder / f"{module}.pyi")
        lines += _documented(tree, "tundish", names)
    for stem, module in MODULES.items():
        path = folder / f"{stem}.py"
        if path.exists():
            tree = _tree(path)
            lines += [f"## {module}", "", *_prose(ast.get_docstring(tree)), *_documented(tree, module, _all(tree))]
    return "\n".join(lines)


def _tree(path):
    return ast.parse(path.read_text())


def _exported(folder):
    """{module: names} of the package's own names."""
    found = {}
    for node in _tree(folder / "__init__.pyi").body:
        if isinstance(node, ast.ImportFrom) and node.module:
            found.setdefault(node.module, []).extend(alias.name for alias in node.names)
    found.pop("data", None)
    return found


def _all(tree):
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return ast.literal_eval(node.value)
    return [node.name for node in tree.body if hasattr(node, "name") and not node.name.startswith("_")]


def _documented(tree, module, names):
    lines = []
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in names:
            lines += [f"### {module}.{node.name}", "", *_signature(node), *_prose(ast.get_docstring(node))]
            if isinstance(node, ast.ClassDef):
                lines += _members(node)
    return lines


def _members(node):
    lines = []
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and not member.name.startswith("_") and ast.get_docstring(member):
            lines += [f"#### {node.name}.{member.name}", "", *_signature(member), *_prose(ast.get_docstring(member))]
    return lines


def _signature(node):
    if isinstance(node, ast.ClassDef):
        node = next((item for item in node.body if getattr(item, "name", "") == "__init__"), node)
    if isinstance(node, ast.ClassDef):
        return []
    arguments = re.sub(r"^self(, )?", "", ast.unparse(node.args))
    returns = f" -> {ast.unparse(node.returns)}" if node.returns and node.name != "__init__" else ""
    return ["```python", f"({arguments}){returns}", "```", ""]


def _prose(text):
    """A docstring as Markdown: paragraphs; lists of what is named; code, which is indented."""
    lines = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text or "")):
        rows = paragraph.splitlines()
        if all(row.startswith("    ") for row in rows):
            lines += ["```python", *(row.removeprefix("    ") for row in rows), "```", ""]
            continue
        for row in rows:
            named = re.match(r"([a-z_][\w, ]*): (.*)", row)
            if named and not row.startswith(" ") and _is_list(rows):
                lines.append(f"- `{named[1]}`: {text_of(named[2])}")
            else:
                lines.append(("  " if row.startswith(" ") and lines and lines[-1] else "") + text_of(row.strip()))
        lines.append("")
    return lines


def _is_list(rows):
    """Each row names something or goes on with what the row before said."""
    return all(row.startswith("    ") or re.match(r"[a-z_][\w, ]*: ", row) for row in rows)
