"""What is documented is true: the examples of every module and of docs/python.md are run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import nvlab
import pytest

ROOT = Path(__file__).parents[2]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = sorted(
    f"nvlab.{module.name}" for module in pkgutil.iter_modules(nvlab.__path__) if module.name not in ("__main__", "_nvlab")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module(name)
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(module, optionflags=FLAGS).failed == 0


def test_everything_public_is_described() -> None:
    for name in nvlab.__all__:
        item = getattr(nvlab, name)
        assert name.isupper() or (item.__doc__ or "").strip(), name
        for member, value in vars(item).items() if isinstance(item, type) else ():
            if not member.startswith("_") and callable(value) and name != "Latency":
                assert (value.__doc__ or "").strip(), f"{name}.{member}"


def test_examples_of_the_manual() -> None:
    failed, attempted = doctest.testfile(str(ROOT / "docs/python.md"), module_relative=False, optionflags=FLAGS)
    assert (failed, attempted > 15) == (0, True)


def test_everything_public_is_in_the_reference() -> None:
    page = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\.\. auto(?:function|class|exception|data):: (\w+)$", page, re.MULTILINE)
    assert sorted(listed) == sorted(nvlab.__all__)


def test_what_pages_refer_to_is_explained() -> None:
    texts = [page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("**/*.md")]
    topics = {topic for text in texts for topic in re.findall(r"`nv(?:lab explain |\.explain\(\")([a-z][\w.*-]*)", text)}
    assert len(topics) > 5
    for topic in topics:
        assert nvlab.explain(topic), topic
