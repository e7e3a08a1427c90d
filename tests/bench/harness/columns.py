"""The cell `columns`: numeric stages over columns of fixed size, as a share of what copying moves."""

import json
import subprocess


def measure(options):
    with subprocess.Popen(
        [options.build / "tests/bench/bench_columns"], stdout=subprocess.PIPE, text=True
    ) as process:
        for text in process.stdout:
            show(json.loads(text), options.json)
    if process.returncode != 0:
        raise SystemExit(f"bench: columns: bench_columns ended with {process.returncode}")


def show(line, as_json):
    if as_json:
        print(json.dumps({"cell": "columns", **line}), flush=True)
        return
    dtypes = f"{line['from']} to {line['to']}"
    print(
        f"columns {line['stage']:22} {dtypes:18} {line['values']:9} values: "
        f"{line['ns_a_value']:7.3f} ns each, {line['to_memcpy']:4.0%} of memcpy",
        flush=True,
    )
