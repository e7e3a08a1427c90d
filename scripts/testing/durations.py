"""How long suites took on this machine, to say how long the rest may take."""

import json
from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / ".cache" / "test-seconds.json"


def known(file=FILE):
    """Seconds by suite, of its last run."""
    try:
        return {name: float(seconds) for name, seconds in json.loads(file.read_text()).items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def note(name, seconds, file=FILE):
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({**known(file), name: round(seconds, 1)}, indent=1) + "\n")


def left(names, seconds):
    """The time that the suites still to run may take, in words; "" if none of them ever ran here."""
    told = [seconds[name] for name in names if name in seconds]
    if not told:
        return ""
    minutes = sum(told) / 60
    amount = f"{minutes:.0f} minutes" if minutes >= 1.5 else "a minute" if minutes > 0.75 else "less than a minute"
    return f", {'about' if len(told) == len(names) else 'more than'} {amount} left"
