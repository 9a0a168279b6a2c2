"""Parts: datasheets, every number with its source."""

from __future__ import annotations

from typing import NamedTuple

from . import _nvlab
from ._html import escape, grid
from ._table import Table


class Fact(NamedTuple):
    """A number of a datasheet: its value as written, `stated`, `cited`, `derived` or `assumed`, and its source."""

    value: str
    basis: str
    source: str


class Part:
    """A memory part."""

    def __init__(self, name: str, about: str, facts: list[tuple[str, str, str, str]]) -> None:
        self.name = name
        #: What it is, in one line.
        self.about = about
        #: Every number by its key.
        self.facts = {key: Fact(value, basis, source) for key, value, basis, source in facts}

    def __getitem__(self, key: str) -> str:
        return self.facts[key].value

    def __repr__(self) -> str:
        return f"<Part {self.name}: {self.about}>"

    def _repr_html_(self) -> str:
        rows = [[key, *fact] for key, fact in self.facts.items()]
        return f"<h4>{escape(self.name)}</h4><p>{escape(self.about)}</p>" + grid(["key", *Fact._fields], rows)


_COLUMNS = (
    "name",
    "kind",
    "capacity_bytes",
    "read_ns",
    "read_max_ns",
    "write_ns",
    "erase_ns",
    "endurance_cycles",
    "price_usd_per_gib",
    "about",
)


def parts() -> Table:
    """The built-in parts; values that a part does not have are missing."""
    columns = dict(zip(_COLUMNS, zip(*_nvlab.parts(), strict=True), strict=True))
    return Table(_nvlab.Frame.of_columns(list(columns.items())), [name for name in _COLUMNS if name != "about"])


def part(name: str) -> Part:
    """A part: a built-in name, or the path of a file.

    >>> part("tlc-2022").facts["program"].basis in ("stated", "cited", "derived", "assumed")
    True
    """
    return Part(*_nvlab.part(name))


def explain(topic: str | None = None) -> str:
    """A design key, a table of keys, a metric, workloads, formats; without a topic, the list of topics.

    >>> print(explain("waf").splitlines()[0])
    Write amplification: bytes programmed for each byte the host wrote
    """
    return _nvlab.explain_text(topic)
