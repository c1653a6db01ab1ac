#!/usr/bin/env bash
# Writes requirements/node-gpu.txt: every package of a GPU node by version and sha256.
# Requires TIPCFLOW_WHEEL_URL: a folder, or the URL of a page with links, with the wheels that the index lacks.
# Review the wheels that it selected before you commit the file: afterwards only these files can be installed.
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
# The installation would reject a package without a hash; report it here.
for package in paddlepaddle-gpu auto-log; do
    if ! grep -A1 -E "^$package==[^ ]+ \\\\$" "$draft" | grep -q -- '--hash=sha256:'; then
        echo "error: no sha256 of $package available from TIPCFLOW_WHEEL_URL" >&2
        exit 2
    fi
done
{ echo "# Written by tools/lock_gpu.sh."; cat "$draft"; } > requirements/node-gpu.txt
echo "requirements/node-gpu.txt:" >&2
grep -A1 -E '^(paddlepaddle-gpu|auto-log)==' requirements/node-gpu.txt >&2
