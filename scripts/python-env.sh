#!/usr/bin/env bash
# A Python with what the tests of the package and the documentation need, in a folder (default: target/python); prints the
# interpreter. It is made once for each list of packages.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-target/python}
packages="pytest==9.2.0 mypy==2.4.1 pyarrow==26.0.1 polars==2.1.0 pandas==3.1.1 duckdb==2.0.0 distributed==2026.8.0 optuna==5.0.0 matplotlib==3.11.2
sphinx==9.0.4 myst-nb==1.4.0 furo==2025.12.19 ipykernel==7.4.0"
if [ "$(cat "$folder/packages" 2>/dev/null)" != "$packages" ]; then
    rm -rf "$folder"
    python3 -m venv "$folder"
    # shellcheck disable=SC2086
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check $packages >&2
    echo "$packages" >"$folder/packages"
fi
echo "$PWD/$folder/bin/python"
