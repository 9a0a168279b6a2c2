"""Power cuts during a program."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ._command import cli
from ._design import design as read_design
from ._errors import CommandError, InputError
from ._run import AnyDesign

#: The status of a command whose check found something.
_FOUND = 1


class Loss(NamedTuple):
    """The data that a cut lost."""

    #: The operation during or after which the power failed, from 1.
    operation: int
    #: After the operation, not during it.
    after: bool
    #: The device broke its own promise.
    of_device: bool
    #: A file system or program on it noticed.
    on_it: bool
    #: In words.
    lost: str


class Cuts:
    """The data that power cuts during a program lost."""

    def __init__(self, operations: int, cuts: int, losses: list[Loss], saved: Path | None, said: str) -> None:
        #: Operations that changed the device in the recorded run.
        self.operations = operations
        #: Moments at which the power was cut.
        self.cuts = cuts
        self.losses = losses
        #: The smallest failing run, for `nvlab cut --replay`; `None` if nothing was lost.
        self.saved = saved
        #: What the program, its checks and nvlab wrote to standard error.
        self.said = said

    def __bool__(self) -> bool:
        """True if nothing was lost."""
        return not self.losses

    def __repr__(self) -> str:
        lost = f"{len(self.losses)} lost something" if self.losses else "nothing was lost"
        return f"<{self.cuts} cuts among {self.operations} operations: {lost}>"


def cut(
    design: AnyDesign,
    program: Sequence[str | os.PathLike[str]],
    *,
    cuts: int = 200,
    check: Sequence[str] = (),
    seed: int = 1,
    fuse: str | os.PathLike[str] | None = None,
    ignore_flush: bool = False,
    save: str | os.PathLike[str] = "cut-failure.nvcut",
) -> Cuts:
    """Runs a program on a served device, then cuts its power at many moments of that run and checks what survives: the device's
    own promise, and with `check` a file system (`"fs=ext4"`) and the program (`"program"`). It runs as a separate process
    (`nvlab cut`, whose help describes the program's environment)."""
    import json

    source, text, sets = read_design(design)._inner.parts()
    if text is not None and not source.endswith(".toml"):
        raise InputError("a program runs on a built-in design or on one of a file: save it first (Design.save)")
    words: list[str] = ["cut", source.split(",")[0], "--json", "--cuts", str(cuts), "--seed", str(seed), "--save", os.fspath(save)]
    words += [word for one in sets for word in ("--set", one)]
    words += [word for one in check for word in ("--check", one)]
    words += ["--fuse", os.fspath(fuse)] if fuse is not None else []
    words += ["--ignore-flush"] if ignore_flush else []
    done = cli([*words, "--", *(os.fspath(word) for word in program)], check=False)
    if done.returncode not in (0, _FOUND) or not done.stdout.strip():
        raise CommandError(done.stderr.strip(), done.returncode)
    document = json.loads(done.stdout)
    losses = [
        Loss(one["operation"], one["after"], one["of_device"], one["on_it"], one["lost"])
        for one in document["losses"]
    ]
    return Cuts(document["operations"], document["cuts"], losses, Path(save) if losses else None, done.stderr)
