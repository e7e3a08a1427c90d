"""Which TensorFlow this was tried with. Another one may have other objects, and a guess is worse than a
refusal."""

from __future__ import annotations

from collections.abc import Callable

# (TensorFlow, Keras), by their minor versions.
TRIED = (("2.21", "3.15"),)


def refusal(installed: Callable[[str], str | None]) -> str | None:
    """Why the installed TensorFlow cannot be used; None: it can. installed: the version of a
    distribution, None if it is missing."""
    tensorflow = next(filter(None, map(installed, ("tensorflow", "tensorflow-cpu", "tensorflow_cpu"))), None)
    keras = installed("keras")
    if tensorflow is None or keras is None:
        return "TensorFlow is not installed in this Python: run tundish port where the program runs"
    if (_minor(tensorflow), _minor(keras)) in TRIED:
        return None
    tried = ", ".join(f"TensorFlow {t} with Keras {k}" for t, k in TRIED)
    return (
        f"this is TensorFlow {tensorflow} with Keras {keras}, whose objects may differ: it was tried with "
        f"{tried}. Run it there; the pipeline file is the same"
    )


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
