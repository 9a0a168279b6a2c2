"""Progress: one line that is rewritten, in a terminal or in a notebook."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

#: `(done, asked, running)`: runs that are done, all of them, and title, phase and share of those under way.
Report: TypeAlias = Callable[[int, int, "list[tuple[str, str, float]]"], None]

#: `None`: where somebody looks, unless NVLAB_NO_PROGRESS is set (as for the command line); `True`: always; `False`: never; or what is called with the numbers.
Progress: TypeAlias = "bool | Report | None"

_EVERY_S = 0.2


class _Line(Protocol):
    def show(self, text: str) -> None: ...
    def end(self) -> None: ...


class _Terminal:
    """A line of stderr."""

    def __init__(self) -> None:
        self._width = 0

    def show(self, text: str) -> None:
        try:
            # A terminal that does not know its size says 0.
            columns = os.get_terminal_size(sys.stderr.fileno()).columns or 100
        except (OSError, ValueError):
            columns = 100
        text = text[: max(20, columns - 1)]
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def end(self) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()


class _Notebook:
    """An output of a cell that is replaced."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str) -> None:
        from IPython.display import display

        data = {"text/plain": text}
        if self._handle is None:
            self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)

    def end(self) -> None:
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and shell.__class__.__name__ == "ZMQInteractiveShell"


def _unwanted() -> bool:
    return os.environ.get("NVLAB_NO_PROGRESS", "").lower() not in ("", "0", "false", "f", "no", "n", "off")


class Reporter:
    """Receives the progress reports of the engine."""

    def __init__(self, progress: Progress) -> None:
        self._call: Report | None = None
        self._line: _Line | None = None
        self._last = 0.0
        if callable(progress):
            self._call = progress
        elif progress or (progress is None and not _unwanted()):
            if _in_notebook():
                self._line = _Notebook()
            elif progress or (sys.stderr is not None and sys.stderr.isatty()):
                self._line = _Terminal()

    @property
    def report(self) -> Report | None:
        """The callback, if progress is shown."""
        if self._call is not None:
            return self._call
        return self._show if self._line is not None else None

    def _show(self, done: int, asked: int, running: list[tuple[str, str, float]]) -> None:
        now = time.monotonic()
        if self._line is None or now - self._last < _EVERY_S or not asked:
            return
        self._last = now
        self._line.show(line(done, asked, running))

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, *_: object) -> None:
        if self._line is not None:
            self._line.end()


def line(done: int, asked: int, running: list[tuple[str, str, float]]) -> str:
    """Progress in one line.

    >>> line(3, 8, [("ssd-tlc", "settling", .5), ("ssd-qlc", "filling", .25)])
    '3 of 8 runs; ssd-tlc: settling 50 %; ssd-qlc: filling 25 %'
    """
    head = [f"{done} of {asked} runs"] if asked > 1 else []
    each = [f"{title}: {phase} {share:.0%}".replace("%", " %") for title, phase, share in running]
    return "; ".join(head + each)
