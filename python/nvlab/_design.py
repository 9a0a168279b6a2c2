"""Designs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from . import _nvlab
from ._html import escape, facts, preformatted
from ._table import Table
from ._text import Value, text_of


class Difference(NamedTuple):
    """A value in which two designs differ; `None` where a design has no such value."""

    key: str
    this: str | None
    other: str | None


class Design:
    """A storage design, resolved and checked. It never changes: `set` and `with_` return others."""

    __slots__ = ("_inner",)

    def __init__(self, inner: _nvlab.Design) -> None:
        self._inner = inner

    def set(self, key: str, value: Value) -> Design:
        """The same design with another value, checked at once.

        >>> import nvlab as nv
        >>> nv.design("ssd-tlc").set("ftl.clean.kind", "fifo").name
        'ssd-tlc ftl.clean.kind=fifo'
        """
        return self.with_({key: value})

    def with_(self, values: Mapping[str, Value]) -> Design:
        """The same design with other values, checked together."""
        return Design(self._inner.with_sets([f"{key}={text_of(value)}" for key, value in values.items()]))

    def scale(self, capacity: str | float) -> Design:
        """The same kind of drive with another capacity (as `"1 TB"`, or bytes): dies, memory, buffer, map and checkpoints grow with
        it, shares stay (`nvlab design scale`).

        >>> import nvlab as nv
        >>> large = nv.design("ssd-tlc").scale("1 TB")
        >>> large.name, large.capacity_bytes // 10**9
        ('ssd-tlc-1tb', 1000)
        """
        return Design(self._inner.scale(capacity if isinstance(capacity, str) else f"{int(capacity)} B"))

    @property
    def name(self) -> str:
        """Its name, with what was changed: `ssd-tlc ftl.clean.kind=fifo`."""
        return self._inner.name

    @property
    def about(self) -> str:
        """One-line description."""
        return self._inner.about

    @property
    def cite(self) -> str:
        """The publication it follows; may be empty."""
        return self._inner.cite

    @property
    def capacity_bytes(self) -> int:
        """Bytes the host can address."""
        return self._inner.capacity_bytes

    @property
    def raw_bytes(self) -> int:
        """Bytes of flash that are paid for."""
        return self._inner.raw_bytes

    @property
    def price(self) -> float | None:
        """Cost of its media, USD; `None` if a price is missing."""
        return self._inner.price_usd

    @property
    def prices(self) -> dict[str, float | None]:
        """Cost of each medium, USD."""
        return {name: usd for name, _, usd in self._inner.prices()}

    @property
    def values(self) -> dict[str, str]:
        """Every value by its key, defaults included."""
        return {key: value for key, value, _ in self._inner.values()}

    @property
    def origins(self) -> dict[str, str]:
        """The origin of each value: a line of a file, a datasheet, the default, a change."""
        return {key: origin for key, _, origin in self._inner.values()}

    @property
    def warnings(self) -> list[str]:
        """Warnings about implausible values."""
        return self._inner.warnings()

    def __getitem__(self, key: str) -> str:
        return self.values[key]

    def diff(self, other: Design) -> list[Difference]:
        """The values in which it differs from another design.

        >>> import nvlab as nv
        >>> tlc = nv.design("ssd-tlc")
        >>> tlc.diff(tlc.set("ftl.clean.kind", "fifo"))[0]
        Difference(key='ftl.clean.kind', this='"greedy"', other='"fifo"')
        """
        return [Difference(*one) for one in self._inner.diff(other._inner)]

    def to_toml(self) -> str:
        """A design file with every default filled in and the origin of each value beside it."""
        return self._inner.to_toml()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes `to_toml` to a new file."""
        path = Path(path)
        with path.open("x", encoding="utf-8") as file:
            file.write(self.to_toml())
        return path

    def __eq__(self, other: object) -> bool:
        """Equal if they behave the same, whatever their names."""
        return isinstance(other, Design) and self._inner.canonical() == other._inner.canonical()

    def __hash__(self) -> int:
        return hash(self._inner.canonical())

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuilt, self._inner.parts())

    def __repr__(self) -> str:
        return f"<Design {self.name}: {_nvlab.display_bytes(self.capacity_bytes)}>"

    def __str__(self) -> str:
        return self.to_toml()

    def _repr_html_(self) -> str:
        price = "unknown" if self.price is None else f"{self.price:,.2f} USD"
        rows = [
            ("capacity", _nvlab.display_bytes(self.capacity_bytes)),
            ("price of media", price),
            ("changed", ", ".join(self._inner.changes) or "nothing"),
        ]
        about = f"<p>{escape(self.about)}</p>" if self.about else ""
        return f"<h4>{escape(self.name)}</h4>{about}{facts(rows)}" + preformatted("every value", self.to_toml())


def _rebuilt(source: str, text: str | None, sets: list[str]) -> Design:
    return Design(_nvlab.Design(source, text, sets))


def design(source: str | os.PathLike[str] | Design) -> Design:
    """A design: a built-in name (`designs()` lists them; changes may follow after commas, as in
    `"ssd-tlc,ftl.spare=20%"`), the path of a TOML file, or the text of one (anything with a line end).

    >>> design("ssd-tlc").capacity_bytes > 10**11
    True
    """
    if isinstance(source, Design):
        return source
    text: str | None = None
    if isinstance(source, os.PathLike) or _is_file(source):
        source = os.fspath(source)
        text = Path(source).read_text(encoding="utf-8")
    elif "\n" in source:
        source, text = "design", source
    return Design(_nvlab.Design(source, text, []))


def _is_file(source: str) -> bool:
    return "\n" not in source and "," not in source and (source.endswith(".toml") or "/" in source)


def designs() -> Table:
    """The built-in designs: name, capacity, price of the media, and description."""
    rows = [Design(_nvlab.Design(name, None, [])) for name in _nvlab.designs()]
    return Table.of_columns(
        {
            "name": [one.name for one in rows],
            "capacity_bytes": [one.capacity_bytes for one in rows],
            "price_usd": [one.price for one in rows],
            "about": [one.about for one in rows],
        }
    )


def template(name: str = "my-design") -> str:
    """A commented design to start from, as `nvlab design new` writes it."""
    return _nvlab.design_template(name)


def schema() -> dict[str, object]:
    """The JSON Schema of design files, for editors."""
    import json

    document: dict[str, object] = json.loads(_nvlab.design_schema())
    return document
