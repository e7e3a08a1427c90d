"""One column of one step, in the form of the recorded cases: dtype, structure, values."""

import base64
import math
import struct

SHOWN_VALUES = 4

_INTEGERS = {
    f"{sign}int{bits}": (0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
}
_FLOATS = {"float16": "<e", "float32": "<f", "float64": "<d"}
_STRUCTURE = {
    "dense": ("shape",),
    "ragged": ("row_splits", "inner_shape"),
    "sparse": ("dense_shape", "indices"),
}


class BadValue(ValueError):
    """A value that its column's dtype cannot hold."""


def differences(recorded, delivered, tolerance=None):
    """Sentences that say how two columns differ; none if they are the same."""
    structure = _structure_differences(recorded, delivered)
    if structure:
        return structure
    dtype = recorded["dtype"]
    try:
        pairs = [
            (parse(dtype, expected), parse(dtype, got))
            for expected, got in zip(recorded["values"], delivered["values"])
        ]
    except BadValue as error:
        return [str(error)]
    wrong = [
        index
        for index, (expected, got) in enumerate(pairs)
        if not _same(dtype, expected, got, tolerance)
    ]
    if not wrong:
        return []
    shown = ", ".join(
        f"[{index}] is {_shown(delivered['values'][index])}"
        f" instead of {_shown(recorded['values'][index])}"
        for index in wrong[:SHOWN_VALUES]
    )
    return [f"{len(wrong)} of {len(pairs)} values differ: {shown}"]


def parse(dtype, value):
    """A value as something that compares equal exactly when its bits do, NaNs apart."""
    if dtype == "string":
        return _parse_string(value)
    if dtype == "bool":
        if not isinstance(value, bool):
            raise BadValue(f"{_shown(value)} is not a bool")
        return value
    if dtype in _INTEGERS:
        low, high = _INTEGERS[dtype]
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise BadValue(f"{_shown(value)} is not of dtype {dtype}")
        return value
    if dtype == "bfloat16" or dtype in _FLOATS:
        return _parse_float(dtype, value)
    raise BadValue(f"{_shown(dtype)} is not a dtype")


def kind_of(column):
    return "ragged" if column.get("ragged") else "sparse" if column.get("sparse") else "dense"


def _structure_differences(recorded, delivered):
    found = []
    for name, expected, got in [
        ("dtype", recorded.get("dtype"), delivered.get("dtype")),
        ("kind", kind_of(recorded), kind_of(delivered)),
    ]:
        if expected != got:
            found.append(f"{name} is {got} instead of {expected}")
    if found:
        return found
    for name in _STRUCTURE[kind_of(recorded)]:
        absent = [] if name == "inner_shape" else None
        expected, got = recorded.get(name, absent), delivered.get(name, absent)
        if expected != got:
            found.append(f"{name} is {_shown(got)} instead of {_shown(expected)}")
    expected, got = len(recorded["values"]), len(delivered["values"])
    if expected != got:
        found.append(f"there are {got} values instead of {expected}")
    return found


def _parse_string(value):
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, dict) and set(value) == {"base64"}:
        try:
            return base64.b64decode(value["base64"], validate=True)
        except ValueError as error:
            raise BadValue(f"{_shown(value)}: {error}") from error
    raise BadValue(f"{_shown(value)} is not a string")


def _parse_float(dtype, value):
    """The float64 with the value of the nearest number of the dtype."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise BadValue(f"{_shown(value)} is not of dtype {dtype}")
    if isinstance(value, str) and value not in ("nan", "inf", "-inf"):
        raise BadValue(f"{_shown(value)} is not of dtype {dtype}")
    number = float(value)
    if not math.isfinite(number):
        return number
    try:
        if dtype == "bfloat16":
            return _nearest_bfloat16(number)
        return struct.unpack(_FLOATS[dtype], struct.pack(_FLOATS[dtype], number))[0]
    except OverflowError:
        raise BadValue(f"{_shown(value)} does not fit {dtype}") from None


def _nearest_bfloat16(number):
    bits = struct.unpack("<I", struct.pack("<f", number))[0]
    bits += 0x7FFF + (bits >> 16 & 1)
    return struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0]


def _same(dtype, expected, got, tolerance):
    if not isinstance(expected, float):
        return expected == got
    if math.isnan(expected) or math.isnan(got):
        return math.isnan(expected) and math.isnan(got)
    if expected == got:
        return math.copysign(1, expected) == math.copysign(1, got) or tolerance is not None
    if tolerance is None or not (math.isfinite(expected) and math.isfinite(got)):
        return False
    return abs(expected - got) <= tolerance * max(1.0, abs(expected))


def _shown(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
