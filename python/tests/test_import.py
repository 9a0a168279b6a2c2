"""`import nvlab` is quick and needs nothing."""

from __future__ import annotations

import subprocess
import sys

import nvlab as nv


def test_nothing_else_is_imported() -> None:
    code = (
        "import sys; import nvlab; "
        "print(sorted({name.split('.')[0] for name in sys.modules} - set(sys.stdlib_module_names) - {'nvlab', '__main__'}))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_is_promised_is_there() -> None:
    assert all(hasattr(nv, name) for name in nv.__all__)
    assert nv.__version__ == nv.VERSION
    assert list(nv.__all__) == sorted(nv.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
