#!/usr/bin/env bash
# `make test-unit`: the fast tests of tests/unit, in parallel.
set -euo pipefail
cd "$(dirname "$0")/.."

# Thousands of small SQLite databases: in memory they take 10 s less than on a disk. Containers often have 64 MiB.
folder=""
if [ -w /dev/shm ] && [ "$(df --output=avail -k /dev/shm | tail -1)" -gt 1048576 ]; then
    folder=$(mktemp -d /dev/shm/tipcflow-tests.XXXXXX)
    trap 'rm -rf "$folder"' EXIT
fi
# pytest caches the compiled tests, even if PYTHONDONTWRITEBYTECODE is set: reading them takes half of a run
PYTHONDONTWRITEBYTECODE='' .venv/bin/pytest tests/unit -n auto --dist worksteal ${folder:+--basetemp="$folder/pytest"} \
    -m "not slow and not process and not cluster and not e2e and not full"
