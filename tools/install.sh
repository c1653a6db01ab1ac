#!/usr/bin/env bash
# Creates .venv with tipcflow; requires only Python 3.11 or newer with pip. Called by `make install`.
# All packages are pinned by version and hash in requirements/.
set -euo pipefail
cd "$(dirname "$0")/.."
state=${TIPCFLOW_HOME:-.tipcflow}
export PIP_ROOT_USER_ACTION=ignore

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $1"; say "  hint: $2"; exit 2; }

find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python3.14 python; do
        # The command may be a shim that cannot run.
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    local found
    found=$(python3 --version 2>&1 || true)
    die "Python 3.11 or newer is needed, found: ${found:-none}" \
        "install python3.11 or newer with pip, or name it: make install PYTHON=/path/to/python3.12"
}

install_uv() {
    local uv=$state/uv/bin/uv
    if [ -x "$uv" ] && [ "$state/uv/.requirements" -nt requirements/uv.txt ]; then return; fi
    if ! "$python" -m pip --version >/dev/null 2>&1; then
        if command -v uv >/dev/null; then
            mkdir -p "$state/uv/bin"
            ln -sf "$(command -v uv)" "$uv"
            return
        fi
        die "$python has no pip" "install it (Debian: apt-get install python3-pip)"
    fi
    say "installing uv"
    # --target works with externally managed Pythons and needs no venv module.
    "$python" -m pip install --quiet --disable-pip-version-check --require-hashes --upgrade \
        --target "$state/uv" -r requirements/uv.txt \
        || die "pip could not install uv" "check the network, a proxy (HTTPS_PROXY) or your index (PIP_INDEX_URL)"
    touch "$state/uv/.requirements"
}

python=$(find_python)
install_uv
uv=$state/uv/bin/uv
if ! .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    say "creating .venv with $("$python" --version)"
    "$uv" venv --quiet --clear --no-python-downloads --python "$python" .venv
fi
say "installing $(grep -cE '^[A-Za-z0-9_.-]+==' requirements/dev.txt) packages into .venv (about 700 MB)"
# Sync also removes tipcflow itself; it is installed again below. Bytecode is written now: if PYTHONDONTWRITEBYTECODE is
# set, as in many containers, each process would compile its imports: 2 s per `tipcflow run`, 3 s per Airflow process.
"$uv" pip sync --quiet --compile-bytecode --python .venv/bin/python --require-hashes requirements/dev.txt \
    || die "the packages could not be installed" "check the network, a proxy (HTTPS_PROXY) or your index (UV_DEFAULT_INDEX)"
"$uv" pip install --quiet --python .venv/bin/python --no-deps --build-constraints requirements/build.txt --editable .
.venv/bin/python -m compileall -q src operators plugins
touch .venv/.installed
say "installed; next: make demo, or .venv/bin/tipcflow --help"
