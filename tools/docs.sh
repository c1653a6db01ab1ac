#!/usr/bin/env bash
# Builds the documentation site into site/: strict links, nothing loaded from other hosts. Called by `make docs`.
# Its environment is pinned in requirements/docs.txt and kept apart from .venv.
set -euo pipefail
cd "$(dirname "$0")/.."
state=${TIPCFLOW_HOME:-.tipcflow}
env=$state/envs/docs
export NO_MKDOCS_2_WARNING=1

if [ ! -e "$env/.requirements" ] || [ requirements/docs.txt -nt "$env/.requirements" ]; then
    "$state/uv/bin/uv" venv --quiet --clear --no-python-downloads --python .venv/bin/python "$env"
    "$state/uv/bin/uv" pip sync --quiet --python "$env/bin/python" --require-hashes requirements/docs.txt
    touch "$env/.requirements"
fi
.venv/bin/python tools/package_graph.py
# Not --quiet: it would also hide the warnings from --strict.
PATH=$PWD/$env/bin:$PATH "$env/bin/mkdocs" build --strict
"$env/bin/python" tools/check_site.py site
