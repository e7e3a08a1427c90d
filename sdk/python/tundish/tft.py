"""tf.Transform's names for a function that tundish.data traces, without tf.Transform.

    from tundish import tft

    ds = ds.map(lambda row: {"fare": tft.scale_to_z_score(row["fare"])})

`tundish analyze` learns the statistics, from the stream itself.
"""

from __future__ import annotations

from typing import Any

from .data.namespace import Namespace

__all__: list[str] = []
_names = Namespace("tft")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_names, name)


def __dir__() -> list[str]:
    return dir(_names)
