"""Values as design files and the command line write them, and lists of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias, overload

from . import _nvlab
from ._errors import InputError

#: What a key of a design may be set to: a text (`"7 %"`, `"4 KiB"`, `"greedy"`), a number, a flag, or a list of them.
Value: TypeAlias = "str | int | float | bool | Sequence[str | int | float | bool]"


def text_of(value: Value) -> str:
    """A value as `--set` takes it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, Sequence):
        import json

        items = [json.dumps(item) if isinstance(item, str) else text_of(item) for item in value]
        return f"[{', '.join(items)}]"
    # Numbers of numpy and others are none of the above, and say what they are.
    item = getattr(value, "item", None)
    if item is not None:
        return text_of(item())
    raise InputError(f"a value is a text, a number, a flag or a list of them, not {type(value).__name__}")


def _number_and_unit(value: str | float) -> tuple[float, str]:
    found = re.fullmatch(r"\s*([-+0-9.]+(?:[eE][-+]?[0-9]+)?)\s*(\D*?)\s*", str(value))
    if found is None:
        raise InputError(f"`{value}` is not a number with a unit")
    return float(found[1]), found[2]


def _rounded(value: float) -> float:
    return float(f"{value:.11e}")


@overload
def linspace(start: float, stop: float, count: int = 50) -> list[float]: ...
@overload
def linspace(start: str, stop: str, count: int = 50) -> list[str]: ...
def linspace(start: str | float, stop: str | float, count: int = 50) -> list[float] | list[str]:
    """Evenly spaced values, both ends included; numbers, or texts with the same unit.

    >>> linspace(.3, .9, 4)
    [0.3, 0.5, 0.7, 0.9]
    >>> linspace("10 %", "20 %", 3)
    ['10 %', '15 %', '20 %']
    """
    (low, unit), (high, other) = _number_and_unit(start), _number_and_unit(stop)
    if unit != other:
        raise InputError(f"`{start}` and `{stop}` have different units")
    if count < 1:
        raise InputError("there is at least one value")
    step = (high - low) / (count - 1) if count > 1 else 0.0
    values = [_rounded(low + step * at) for at in range(count)]
    if isinstance(start, str):
        return [f"{value:g} {unit}".strip() for value in values]
    return values


@overload
def arange(start: float, stop: float, step: float) -> list[float]: ...
@overload
def arange(start: str, stop: str, step: str) -> list[str]: ...
def arange(start: str | float, stop: str | float, step: str | float) -> list[float] | list[str]:
    """Values from `start` on, `step` apart, up to and including `stop`: the range of a sweep's file, so that, unlike numpy's,
    the end belongs to it.

    >>> arange("80 %", "95 %", "5 %")
    ['80 %', '85 %', '90 %', '95 %']
    >>> arange(1, 2, .5)
    [1.0, 1.5, 2.0]
    """
    values = _nvlab.range_values(f"{start}..{stop}:{step}")
    return values if isinstance(start, str) else [float(value) for value in values]


def geomspace(start: str, stop: str, factor: float = 2) -> list[str]:
    """Values from `start` on, each `factor` times the one before, up to and including `stop`.

    >>> geomspace("1 MiB", "8 MiB")
    ['1 MiB', '2 MiB', '4 MiB', '8 MiB']
    """
    return _nvlab.range_values(f"{start}..{stop}*{factor}")
