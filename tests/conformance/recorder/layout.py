"""The text of a record: a key a line, a step a line, so that a change of one value is a change of one line."""

import json


def text(record):
    lines = [f"{_json(key)}: {_LAID_OUT.get(key, _json)(value)}" for key, value in record.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _json(value):
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _artifacts(artifacts):
    return "{\n" + ",\n".join(f"  {_json(name)}: {_json(value)}" for name, value in artifacts.items()) + "\n}"


def _workers(workers):
    return "[\n" + ",\n".join(f'  {{"replicas": [{_replicas(worker)}],\n   "end": {_json(worker["end"])}}}'
                              for worker in workers) + "\n]"


def _replicas(worker):
    return ", ".join(_steps(steps) for steps in worker["replicas"])


def _steps(steps):
    return "[\n" + ",\n".join(f"      {_step(step)}" for step in steps) + "\n    ]" if steps else "[]"


def _step(step):
    if isinstance(step, str):
        return _json(step)
    return "{" + ",\n        ".join(f"{_json(name)}: {_json(column)}" for name, column in step.items()) + "}"


_LAID_OUT = {"artifacts": _artifacts, "workers": _workers}
