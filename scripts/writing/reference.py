"""Pages made of the tables of the program: stages, expressions, commands, metrics."""

import json
import re
import subprocess
import sys

_UNITS = {"NONE": "", "SECONDS": "_seconds", "BYTES": "_bytes"}


def tables_of(program):
    return json.loads(subprocess.check_output([program, "help", "--json"], text=True))


def pages(root, tables):
    """{path: text} of the pages of reference that tables give."""
    written = {"reference/expressions.md": expressions(tables["expressions"])}
    written["reference/metrics.md"] = metrics((root / "sdk/shm/stats.def").read_text())
    written["reference/commands.md"] = commands(root, tables["commands"])
    written["reference/headers.md"] = headers(root)
    stages = [stage for stage in tables["stages"] if stage["group"] not in ("Pipeline file", "Features")]
    written["reference/pipeline.md"] = sections([stage for stage in tables["stages"] if stage not in stages])
    written["reference/stages/index.md"] = stage_index(stages)
    written |= {f"reference/stages/{stage['name']}.md": stage_page(stage) for stage in stages}
    return written


def text_of(words):
    """Plain words as Markdown: what would be markup is not."""
    return re.sub(r"(?<!`)([*_<>\[\]|$\\{}])(?!`)", r"\\\1", words)


def cell(words):
    return text_of(words).replace("\n", " ")


def code(words):
    mark = "``" if "`" in words else "`"
    return f"{mark}{words.replace('|', chr(92) + '|')}{mark}"


def stage_page(stage):
    lines = [f"# {stage['name']}", "", text_of(stage["help"]), ""]
    if stage["namesake"]:
        lines += [f"As `{stage['namesake']}`.", ""]
    lines += ["```text", stage["written"], "```", ""]
    return "\n".join([*lines, *_parameters(stage), *_example(stage)])


def _parameters(stage):
    if not stage["parameters"]:
        return []
    lines = ["| parameter | value | default | meaning |", "|---|---|---|---|"]
    for parameter in stage["parameters"]:
        default = "needed" if parameter["needed"] else code(parameter["default"]) if parameter["default"] else ""
        kind = parameter["type"] + ("; may be `$name`" if parameter["varying"] else "")
        lines.append(f"| `{parameter['name']}` | {kind} | {default} | {cell(parameter['help'])} |")
    return [*lines, ""]


def _example(stage):
    lines = ["## Example", "", "```yaml", stage["example"].rstrip(), "```", ""]
    if stage.get("batch"):
        batch = re.sub(r"(?m)^worker 0: .*\n", "", re.sub(r"(?m)^worker 0 replica 0 epoch 0 ", "", stage["batch"]))
        lines += ["gives", "", "```text", batch.rstrip(), "```", ""]
    return lines


def stage_index(stages):
    lines = ["# Stages", "", "In the order in which data meets them. `tundish help STAGE` prints the same.", ""]
    group = None
    for stage in stages:
        if stage["group"] != group:
            group = stage["group"]
            lines += ["", f"## {group}", "", "| stage | what it does | as |", "|---|---|---|"]
        first = re.split(r"\.(?: |$)", stage["help"])[0]
        namesake = f"`{stage['namesake']}`" if stage["namesake"] else ""
        lines.append(f"| [{stage['name']}]({stage['name']}.md) | {cell(first)} | {namesake} |")
    names = "\n".join(stage["name"] for stage in stages)
    return "\n".join([*lines, "", "```{toctree}", ":hidden:", "", names, "```", ""])


def sections(stages):
    lines = ["# The pipeline file", "", "The mappings of a pipeline file besides its stages.", ""]
    for stage in stages:
        lines += [f"## {stage['name']}", "", text_of(stage["help"]), "", "```yaml", stage["example"].rstrip(), "```", "",
                  *_parameters(stage)]  # fmt: skip
    return "\n".join(lines)


def expressions(tables):
    lines = ["# Expressions", ""]
    for rule in tables["rules"]:
        lines += [f"## {rule['title']}", "", text_of(rule["text"]), ""]
    group = None
    for entry in tables["entries"]:
        if entry["group"] != group:
            group = entry["group"]
            lines += ["", f"## {group}", "", "| written | takes | gives | what it does | example |", "|---|---|---|---|---|"]
        example = f"{code(entry['example'])} is {code(entry['result'])}"
        cells = (code(entry["form"]), cell(entry["takes"]), cell(entry["gives"]), cell(entry["help"]), example)
        lines.append(f"| {' | '.join(cells)} |")
    row = "".join(f"    {line}\n" for line in tables["row"].splitlines())
    return "\n".join([*lines, "", "## The row of the examples", "", f"```yaml\n- from_tensors:\n{row}```", ""])


def commands(root, listed):
    lines = ["# Programs and options", "", "What each program says to `--help`.", ""]
    for command in listed:
        lines += [f"## tundish {command['name']}", "", text_of(command["help"]), "", "```text",
                  f"tundish {command['name']} {command['arguments']}", "", command["details"].rstrip(), "```", ""]  # fmt: skip
    said = subprocess.check_output([sys.executable, root / "scripts/tundish-launch", "--help"], text=True,
                                   env={"COLUMNS": "100", "PATH": "/usr/bin:/bin"})  # fmt: skip
    return "\n".join([*lines, "## tundish-launch", "", "```text", said.rstrip(), "```", ""])


def metrics(text):
    lines = ["# Metrics", "", "What `/metrics` of `tundish-admin` gives to Prometheus, and `/api/v1/status` as JSON.",
             "Labels stand in brackets.", ""]  # fmt: skip
    joined = re.sub(r'"\s*\n\s*"', "", text)
    for word, body in re.findall(r"^STATS_(KIND|FIELD)\((.*)\)$", re.sub(r",\n\s+", ", ", joined), re.MULTILINE):
        fields = body.split(", ", 4 if word == "FIELD" else 1)
        words = fields[-1].strip().strip('"')
        if word == "KIND":
            kind = fields[0]
            lines += ["", f"## {kind}", "", f"Of {text_of(words)}.", "", "| metric | kind | what it counts |", "|---|---|---|"]
        else:
            name = f"tundish_{kind}_{fields[1]}{_UNITS[fields[3]]}{'_total' if fields[2] == 'COUNTER' else ''}"
            lines.append(f"| `{name}` | {fields[2].lower()} | {cell(words)} |")
    return "\n".join([*lines, ""])


def headers(root):
    names = sorted(path.name for path in (root / "sdk/include/tundish").glob("*.h"))
    return "# C\n\nThe headers of the libraries.\n\n```{toctree}\n" + "\n".join(names) + "\n```\n"
