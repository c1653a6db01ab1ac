#!/usr/bin/env bash
# Writes requirements/node-gpu.txt: every package of a GPU node by version and sha256.
# Usage: tools/lock_gpu.sh [FILE [PYTHON_VERSION]]; default: requirements/node-gpu.txt 3.11
# Requires TIPCFLOW_WHEEL_URL: a folder, or the URL of a page with links, with the wheels that the index lacks.
# Review the wheels that it selected before you commit the file: afterwards only these files can be installed.
set -euo pipefail
cd "$(dirname "$0")/.."
file=${1:-requirements/node-gpu.txt}
python=${2:-3.11}
uv=${TIPCFLOW_HOME:-.tipcflow}/uv/bin/uv
[ -x "$uv" ] || uv=uv
if [ -z "${TIPCFLOW_WHEEL_URL:-}" ]; then
    echo "error: TIPCFLOW_WHEEL_URL is not set" >&2
    echo "  hint: a folder or page with the wheels of paddlepaddle-gpu and auto_log" >&2
    exit 2
fi
draft=$file.new
trap 'rm -f "$draft"' EXIT
"$uv" pip compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links --no-header \
    --python-version "$python" --python-platform linux --find-links "$TIPCFLOW_WHEEL_URL" \
    requirements/node-gpu.in -o "$draft"
# The installation would reject a package without a hash; report it here.
for package in paddlepaddle-gpu auto-log; do
    if ! grep -A1 -E "^$package==[^ ]+ \\\\$" "$draft" | grep -q -- '--hash=sha256:'; then
        echo "error: no sha256 of $package available from TIPCFLOW_WHEEL_URL" >&2
        exit 2
    fi
done
{ echo "# Written by tools/lock_gpu.sh."; cat "$draft"; } > "$file"
echo "$file:" >&2
grep -A1 -E '^(paddlepaddle-gpu|auto-log)==' "$file" >&2
