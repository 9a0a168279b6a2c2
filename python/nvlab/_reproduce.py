"""Claims of papers, compared with measurements."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from . import _nvlab
from ._progress import Reporter
from ._run import Options, settings
from ._table import Table


class Reproduction:
    """The claims of a system and their measurements."""

    def __init__(self, table: Table, summary: str, holds: bool, page: str) -> None:
        #: A row for each claim: expected, measured, the band, the verdict.
        self.table = table
        #: How many pass, differ, are missing.
        self.summary = summary
        #: No claim differs, and none is missing.
        self.holds = holds
        self._page = page

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Writes claims and figures as a self-contained HTML page; one that exists is replaced."""
        path = Path(path)
        path.write_text(self._page, encoding="utf-8")
        return path

    def __str__(self) -> str:
        return f"{self.table}\n{self.summary}"

    def __repr__(self) -> str:
        return f"<Reproduction: {self.summary}>"

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def reproduce(
    system: str, *, only: Sequence[str] = (), smoke: bool = False, **options: Unpack[Options]
) -> Reproduction:
    """Compares the claims of a system with what is measured: `"000"` (eNVy) to `"004"`, `"drives"`, or a folder of experiment
    files (with a `/`). `only` names figures; `smoke` is a small size, to test that it works."""
    with Reporter(options.get("progress")) as reporter:
        frame, summary, holds, page = _nvlab.reproduce_claims(
            system, list(only), smoke, settings(options), reporter.report
        )
    shown = ["figure", "where", "class", "expected", "measured", "low", "high", "unit", "verdict", "claim"]
    return Reproduction(Table(frame, shown, summary), summary, holds, page)
