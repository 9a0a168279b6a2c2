#!/usr/bin/env bash
# Installs the Python package as a user would, and tries it: from here in a new venv, and from a wheel in another one where no Rust
# is on the path. The examples are those of docs/python.md that need nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1

try() { # an environment with nvlab
    (
        cd "$folder"
        PATH="$1/bin:/usr/bin:/bin"
        ! command -v cargo >/dev/null || echo "cargo is on the path" >&2
        nvlab --version
        nvlab run bench-4g -w 'zipf qd=8' --until '1e5 io' --precondition fresh --quiet | head -2
        python - <<'END'
import time, sys
import nvlab as nv

d = nv.design("envy").set("ftl.clean.kind", "greedy")
r = nv.run(d, nv.workload("tpca", rate="20k/s"), until="10 s")
print(r.write_amplification, r.latency("read").p99_ns, r.lifetime_years)
t = nv.sweep(d, {"ftl.utilization": nv.linspace(0.8, 0.95, 4)}, "tpca rate=10k/s", until="2 s", on="local")
print(t)
with nv.device("bench-4g", data=True) as ssd:
    ssd.write(0, b"kept" * 1024, fua=True)
    print(ssd.cut(), ssd.read(0, 4), ssd.submit(op="read", offset=range(0, 1 << 16, 4096), bytes=4096, depth=4))
loaded = {name.split(".")[0] for name in sys.modules} & {"numpy", "pyarrow", "polars", "pandas", "matplotlib", "IPython"}
assert not loaded, loaded
END
        python -X importtime -c 'import nvlab' 2>&1 | tail -1
    )
}

echo "== pip install . in a new environment"
python3 -m venv "$folder/source"
"$folder/source/bin/pip" install --quiet .
try "$folder/source"

echo "== the wheel in another one, without Rust"
wheel=$(scripts/wheel.sh)
ls -l "$wheel"
python3 -m venv "$folder/wheel"
"$folder/wheel/bin/pip" install --quiet --no-index "$wheel"
try "$folder/wheel"
