"""Pieces of HTML for notebooks: plain tables, which a notebook's own style, light or dark, lays out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def escape(text: object) -> str:
    """Text as HTML."""
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def facts(rows: Iterable[tuple[str, object]]) -> str:
    """Names and values."""
    cells = "".join(
        f'<tr><th scope="row" style="text-align:left">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in rows
    )
    return f"<table>{cells}</table>"


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]], note: str = "") -> str:
    """A table with heads."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    after = f"<p>{escape(note)}</p>" if note else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{after}"


def preformatted(summary: str, text: str) -> str:
    """A text to unfold."""
    return f"<details><summary>{escape(summary)}</summary><pre>{escape(text)}</pre></details>"
