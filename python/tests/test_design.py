"""Designs, parts, explanations."""

from __future__ import annotations

import pickle
from pathlib import Path

import nvlab as nv
import pytest

TEXT = """\
[design]
extends = "ssd-tlc"
name = "mine"

[ftl.clean]
kind = "gredy"
"""


def test_a_change_makes_another_design() -> None:
    one = nv.design("ssd-tlc")
    other = one.set("ftl.clean.kind", "fifo").set("ftl.spare", "20 %")
    assert other.name == "ssd-tlc ftl.clean.kind=fifo ftl.spare=20 %"
    assert one["ftl.clean.kind"] == '"greedy"' and other["ftl.clean.kind"] == '"fifo"'
    assert {difference.key for difference in one.diff(other)} >= {"ftl.clean.kind", "ftl.spare"}
    assert other.set("ftl.clean.kind", "greedy").set("ftl.spare", one["ftl.spare"].strip('"')) == one
    assert one != other and len({one, nv.design("ssd-tlc"), other}) == 2
    # The later change of a key counts; the earlier one is not in the name.
    assert other.set("ftl.spare", 0.25).name == "ssd-tlc ftl.clean.kind=fifo ftl.spare=0.25"
    assert nv.design("ssd-tlc,ftl.spare=20%").with_({"ftl.clean.kind": "fifo"}) == other


def test_figures_of_a_design() -> None:
    design = nv.design("ssd-tlc")
    assert design.capacity_bytes > 100 << 30
    assert design.raw_bytes > design.capacity_bytes
    assert design.price == pytest.approx(sum(usd or 0 for usd in design.prices.values()))
    assert design.origins["ftl.clean.kind"].startswith("builtin:ssd-tlc:")
    assert "ssd-tlc" in design._repr_html_() and "<table>" in design._repr_html_()


def test_texts_and_files(folder: Path) -> None:
    good = TEXT.replace("gredy", "fifo")
    of_text = nv.design(good)
    assert of_text.name == "mine"
    file = folder / "mine.toml"
    file.write_text(good)
    of_file = nv.design(file)
    assert of_file == of_text and of_file.name == str(file) == nv.design(str(file)).name
    # What was read stays as it is, whatever becomes of the file.
    file.write_text("nothing")
    assert of_file.set("ftl.spare", "20 %")["ftl.clean.kind"] == '"fifo"'
    assert pickle.loads(pickle.dumps(of_file)) == of_file
    saved = of_text.save(folder / "resolved.toml")
    assert nv.design(saved) == of_text
    with pytest.raises(FileExistsError):
        of_text.save(saved)


def test_a_wrong_design_says_where_and_what_is_allowed(folder: Path) -> None:
    file = folder / "wrong.toml"
    file.write_text(TEXT)
    with pytest.raises(nv.DesignError) as caught:
        nv.design(file)
    error = caught.value
    assert (error.path, error.line, error.column) == (str(file), 6, 8)
    assert error.message == "`ftl.clean.kind`: `gredy` is not a kind this version knows"
    assert "did you mean `greedy`?" in error.hint
    assert 'kind = "gredy"' in str(error) and isinstance(error, nv.Error)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.problems, str(copy)) == (error.problems, str(error))
    with pytest.raises(nv.DesignError) as several:
        nv.design("ssd-tlc").with_({"ftl.clean.kind": "gredy", "ftl.colour": "blue"})
    assert len(several.value.problems) == 2
    with pytest.raises(nv.DesignError, match="did you mean `ssd-tlc`"):
        nv.design("ssd-tcl")
    with pytest.raises(FileNotFoundError):
        nv.design("no/such.toml")


def test_built_in_designs_and_parts() -> None:
    designs = nv.designs()
    assert len(designs) > 40 and "ssd-tlc" in designs["name"]
    parts = nv.parts()
    assert all(isinstance(name, str) and nv.part(name).facts for name in parts["name"])
    part = nv.part("tlc-2022")
    fact = part.facts["read"]
    assert fact.source and fact.basis in ("stated", "cited", "derived", "assumed") and part["read"] == fact.value
    with pytest.raises(nv.DesignError, match="did you mean"):
        nv.part("tlc-2021x")
    assert nv.design(nv.template("new")).name == "new"
    assert nv.schema()["title"] == "nvlab design"


def test_explanations() -> None:
    assert "ftl.clean.kind" in nv.explain()
    assert nv.explain("waf").startswith("Write amplification")
    with pytest.raises(nv.InputError, match="did you mean `exit-codes`"):
        nv.explain("exit-coeds")
    assert nv.metrics()["write.p99"].column == "write.p99_ns"
