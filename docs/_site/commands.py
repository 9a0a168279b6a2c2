"""The directive `nvlab-commands`: every command with its help, and `nvlab-topics`: every topic of `nvlab explain`; as the program prints them."""

from __future__ import annotations

import re
import subprocess
import sys

import nvlab
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def printed(*words: str) -> str:
    """What `nvlab` prints."""
    command = [sys.executable, "-m", "nvlab", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def listed(text: str, head: str) -> list[str]:
    """The first words of the lines below a head, up to an empty line."""
    block = re.search(rf"^{head}\n((?:  .*\n)+)", text, re.MULTILINE)
    return re.findall(r"^  (\S+)", block[1], re.MULTILINE) if block else []


class Listing(SphinxDirective):
    """Sections with what a command printed below them."""

    def section(self, title: str, text: str, inner: list[nodes.Node]) -> nodes.section:
        name = nodes.make_id(title)
        section = nodes.section(ids=[name], names=[name])
        section += nodes.title("", "", nodes.literal("", title))
        block = nodes.literal_block(text, text.rstrip())
        block["language"] = "text"
        section += [block, *inner]
        return section


class Commands(Listing):
    """Every command, and the commands below it."""

    def run(self) -> list[nodes.Node]:
        return self.below([])

    def below(self, words: list[str]) -> list[nodes.Node]:
        names = [name for name in listed(printed(*words, "--help"), "Commands:") if name != "help"]
        # What all commands have in common is listed once, at the top.
        texts = {name: printed(*words, name, "--help") for name in names}
        own = {name: re.sub(r"\nGlobal options:\n(?:  .*\n|\s*\n)+", "\n", text) for name, text in texts.items()}
        return [self.section(" ".join(["nvlab", *words, name]), own[name], self.below([*words, name])) for name in names]


class Topics(Listing):
    """Every article of `nvlab explain`."""

    def run(self) -> list[nodes.Node]:
        return [self.section(name, nvlab.explain(name), []) for name in listed(printed("explain"), "Topics")]


class Printed(SphinxDirective):
    """What one command prints."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        text = printed(*self.arguments[0].split())
        block = nodes.literal_block(text, text.rstrip())
        block["language"] = "text"
        return [block]


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("nvlab-commands", Commands)
    app.add_directive("nvlab-topics", Topics)
    app.add_directive("nvlab-printed", Printed)
    return {"parallel_read_safe": True}
