#!/usr/bin/env bash
# Writes requirements/node-gpu.txt: every package of a GPU node by version and sha256.
# Needs TIPCFLOW_WHEEL_URL: a folder, or the address of a page with links, that has the wheels which the index lacks.
# Look at what it took from there before you commit the file: from then on only those very files are installed.
set -euo pipefail
cd "$(dirname "$0")/.."
uv=${TIPCFLOW_HOME:-.tipcflow}/uv/bin/uv
[ -x "$uv" ] || uv=uv
if [ -z "${TIPCFLOW_WHEEL_URL:-}" ]; then
    echo "error: TIPCFLOW_WHEEL_URL is not set" >&2
    echo "  hint: a folder or page with the wheels of paddlepaddle-gpu and auto_log" >&2
    exit 2
fi
draft=requirements/node-gpu.txt.new
trap 'rm -f "$draft"' EXIT
"$uv" pip compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links --no-header \
    --python-version 3.11 --python-platform linux --find-links "$TIPCFLOW_WHEEL_URL" \
    requirements/node-gpu.in -o "$draft"
# A package without a hash would make the installation refuse the file; say so here.
for package in paddlepaddle-gpu auto-log; do
    if ! grep -A1 -E "^$package==[^ ]+ \\\\$" "$draft" | grep -q -- '--hash=sha256:'; then
        echo "error: no sha256 of $package could be had from TIPCFLOW_WHEEL_URL" >&2
        exit 2
    fi
done
{ echo "# Written by tools/lock_gpu.sh."; cat "$draft"; } > requirements/node-gpu.txt
echo "requirements/node-gpu.txt:" >&2
grep -A1 -E '^(paddlepaddle-gpu|auto-log)==' requirements/node-gpu.txt >&2
