"""Workloads."""

from __future__ import annotations

import os

from ._frame import ArrowStream, Tables, keep_tables, tables_of, text_of_frame
from ._text import Value, text_of


class Workload:
    """A workload: a generator, a fio job or a trace with its options, as the text after `-w`."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        object.__setattr__(self, "text", text)

    text: str

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a workload does not change")

    def __add__(self, other: Workload | str) -> Workload:
        """Both together, on the same device."""
        return Workload(f"{self.text} + {other}")

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"workload({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Workload) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuilt, (self.text, tables_of([self.text])))


def _rebuilt(text: str, tables: Tables) -> Workload:
    keep_tables(tables)
    return Workload(text)


def workload(source: str | os.PathLike[str] | Workload | ArrowStream, **options: Value | None) -> Workload:
    """A workload: `KIND` with its options, a trace `PATH[:FORMAT]`, a fio job `FILE.fio[:JOB]`, a data frame with the columns of a trace (`trace`), or
    the whole text after `-w` (`explain("workloads")` lists all). An option that is `True` stands alone, one that is `None` or `False` is left out, and
    `_` in a name stands for `-`.

    >>> workload("zipf", read="70%", bs="8 KiB", qd=16)
    workload('zipf read=70% bs=8KiB qd=16')
    >>> workload("traces/db.blkparse.zst", compact=True, align="4KiB").text
    'traces/db.blkparse.zst compact align=4KiB'
    """
    words = [_head(source)]
    for name, value in options.items():
        key = name.replace("_", "-")
        if value is None or value is False:
            continue
        # Blanks end an option.
        words.append(key if value is True else f"{key}={''.join(text_of(value).split())}")
    return Workload(" ".join(words))


def _head(source: str | os.PathLike[str] | Workload | ArrowStream) -> str:
    if isinstance(source, Workload):
        return source.text
    return text_of_frame(source) if isinstance(source, ArrowStream) else os.fspath(source)
