"""Errors. Every error of nvlab is an `Error`; errors of the system are `OSError`s."""

from __future__ import annotations

from typing import NamedTuple


class Error(Exception):
    """An error of nvlab."""


class Problem(NamedTuple):
    """One problem of a file."""

    message: str
    #: The file, `builtin:NAME` or `--set`; `None` if it is nowhere in a file.
    path: str | None
    #: From 1.
    line: int | None
    #: From 1.
    column: int | None
    #: What is allowed, what was probably meant.
    hint: str


class DesignError(Error):
    """A design (or the file of a sweep, a part, an experiment) is wrong: `problems` has all of it, the other attributes its
    first problem. As text it shows the lines concerned."""

    def __init__(self, text: str, problems: list[tuple[str, str | None, int | None, int | None, str]]) -> None:
        super().__init__(text, problems)
        self.problems = tuple(Problem(*problem) for problem in problems)

    def __str__(self) -> str:
        return str(self.args[0])

    @property
    def _first(self) -> Problem:
        return self.problems[0] if self.problems else Problem(str(self), None, None, None, "")

    @property
    def message(self) -> str:
        """The problem, in one line."""
        return self._first.message

    @property
    def path(self) -> str | None:
        """The file, `builtin:NAME` or `--set`."""
        return self._first.path

    @property
    def line(self) -> int | None:
        """The line, from 1."""
        return self._first.line

    @property
    def column(self) -> int | None:
        """The character of the line, from 1."""
        return self._first.column

    @property
    def hint(self) -> str:
        """Allowed values, similar names."""
        return self._first.hint


class WorkloadError(Error):
    """A workload is wrong, or does not fit the device; `path` and `line` if it is a file."""

    def __init__(self, text: str, path: str | None = None, line: int | None = None) -> None:
        super().__init__(text, path, line)
        self.path = path
        self.line = line

    def __str__(self) -> str:
        return str(self.args[0])


class TraceError(WorkloadError):
    """A trace cannot be read."""


class InputError(Error, ValueError):
    """An argument is wrong: a limit, a state, a metric, an axis."""


class RunError(Error):
    """A device failed in a run, or cannot be built."""


class Unsupported(Error):
    """Not possible on this computer, with this design or in this version."""


class PersistenceError(Error):
    """A heap or recoverable memory refused or failed an operation."""


class BusyError(PersistenceError):
    """Another program, or this one, has the file open."""


class DamagedError(PersistenceError):
    """The file is damaged, or is not a heap or log of this version."""


class CommandError(Error):
    """A command that runs in a separate process failed; `status` is its exit status (`nvlab explain exit-codes`)."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text, status)
        self.status = status

    def __str__(self) -> str:
        return str(self.args[0])


class NvlabWarning(UserWarning):
    """A warning about a run: a workload that reads beyond the filled part, an implausible value."""
