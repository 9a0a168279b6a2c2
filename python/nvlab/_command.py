"""The `nvlab` command, and functions that run as a separate process."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _nvlab
from ._errors import CommandError

if TYPE_CHECKING:
    import subprocess


def main() -> None:
    """The command line: the same program as the one built by Cargo."""
    import signal

    # The program has a handler of its own; Python's would wait for an interpreter that is not running.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # `nvlab sweep --on` starts another one of this interpreter.
    os.environ["NVLAB_INTERPRETER"] = sys.executable
    sys.exit(_nvlab.main(["nvlab", *sys.argv[1:]]))


def cli(arguments: Sequence[str | os.PathLike[str]], *, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Runs `nvlab` with arguments in a separate process and returns its output; with `check`, a status other than 0 is a
    `CommandError`. It gives access to all of the command line.

    >>> cli(["explain", "waf"]).stdout.splitlines()[0]
    'Write amplification: bytes programmed for each byte the host wrote'
    """
    import subprocess

    words = [sys.executable, "-m", "nvlab", *(os.fspath(word) for word in arguments)]
    done = subprocess.run(words, text=True, capture_output=True, check=False)
    if check and done.returncode != 0:
        raise CommandError(done.stderr.strip() or f"nvlab ended with status {done.returncode}", done.returncode)
    return done


def document_of(arguments: Sequence[str]) -> dict[str, Any]:
    """The JSON document that a command prints."""
    import json

    printed = cli([*arguments, "--json"]).stdout
    document: dict[str, Any] = json.loads(printed) if printed.strip() else {}
    return document
