#!/usr/bin/env bash
# Runs tests/slurm on a Slurm of four nodes that the tests start. In namespaces of its own, if permitted, nothing of it
# is left on the machine. Called by `make test-slurm`; with --full, also the tests marked `full`, by `make test-full`; with
# --fast, only those marked `fast`, by tools/due_tests.sh. Other arguments are those of pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
marks="not full"
if [ "${1:-}" = --full ]; then
    marks="full or not full"
    shift
elif [ "${1:-}" = --fast ]; then
    marks=fast
    shift
fi
missing=$(.venv/bin/python -c 'import sys; sys.path.insert(0, "."); from tests.support.slurm import missing; print(missing())')
if [ -n "$missing" ]; then
    printf '\n==== SKIPPED: Slurm is not tested: %s ====\n\n' "$missing"
    [ "${CI:-}" != true ] || exit 1
    exit 0
fi
if [ "$marks" = "full or not full" ]; then
    accounts=$(.venv/bin/python -c 'import sys; sys.path.insert(0, "."); from tests.slurm.accounts import missing; print(missing())')
    # With CI=true, the tests of accounts fail.
    [ -z "$accounts" ] || printf '\n==== SKIPPED: accounts of Slurm are not tested: %s ====\n\n' "$accounts"
fi
# Slurm resolves numeric addresses only if the machine has an address other than 127.0.0.1.
own=(unshare --kill-child --pid --fork --mount-proc --mount --net --uts --ipc bash -c
    'ip link set lo up && ip addr add 192.0.2.1/32 dev lo && "$@"; exit $?' own)
"${own[@]}" true 2>/dev/null || own=()
exec "${own[@]}" .venv/bin/pytest tests/slurm -m "$marks" -rs "$@"
