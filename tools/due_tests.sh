#!/usr/bin/env bash
# Runs the fast tests of docker-compose.yaml, and those of Slurm, if what they test has changed.
# Called by .ci/run after `make test`.
#   tools/due_tests.sh SECONDS      SECONDS: time that is left
# Changed means: in the commits since the merge base with origin/main, on that branch in the last 20 commits. Where git cannot
# compare, as in a shallow clone, everything counts as changed. Exit status: 0 without a change, or if the machine has no
# Slurm or cannot run containers, which a loud line states with the reason; otherwise that of the tests.
set -uo pipefail
cd "$(dirname "$0")/.."
left=$1
# Seconds that the tests take (docs/measured.md), of docker-compose.yaml from an empty cache, and their deadlines.
compose_s=700 compose_limit_s=1200 slurm_s=250 slurm_limit_s=600 unavailable=75
compose=(docker docker-compose.yaml 'compose.*.yaml' requirements operators tests/compose tests/support/compose)
slurm=(src/tipcflow/remote src/tipcflow/execute/allocation operators/tipcflow_operators/triggers
    src/tipcflow/transport/command_transport.py tests/slurm tests/support/slurm.py)

loud() { printf '\n==== %s ====\n\n' "$*"; }

base=$(git merge-base HEAD origin/main 2>/dev/null)
if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
    base=HEAD~20
fi

# is_changed PATH...: also if the comparison fails.
is_changed() {
    local names
    names=$(git diff --name-only "$base" HEAD -- "$@" 2>/dev/null) || return 0
    [ -n "$names" ]
}

# run SECONDS PROGRAM: runs the fast tests of a program, at most for SECONDS or the time that is left.
run() {
    local status=0 seconds=$((left - SECONDS < $1 ? left - SECONDS : $1))
    # The tests remove what they started after an interrupt.
    timeout --signal=INT --kill-after=180 "$seconds" "$2" --fast || status=$?
    [ "$status" -ne 124 ] || loud "FAILED: $2 --fast took longer than $seconds s"
    return "$status"
}

# is_late NAME SECONDS: whether less than SECONDS are left for `make NAME`, which a line states.
is_late() {
    [ $((left - SECONDS)) -lt "$2" ] || return 1
    loud "NOT RUN: make $1, although its files changed: $((left - SECONDS)) s are left, and it takes up to $2 s"
}

run_slurm() {
    local reason
    if is_late test-slurm "$slurm_s"; then return 0; fi
    reason=$(.venv/bin/python -c 'from tests.support.slurm import missing; print(missing())') || return
    if [ -n "$reason" ]; then
        loud "NOT RUN: make test-slurm, although its files changed: $reason"
        return 0
    fi
    run "$slurm_limit_s" tools/test_slurm.sh
}

run_compose() {
    local reason status=0
    if is_late test-compose "$compose_s"; then return 0; fi
    reason=$(timeout --signal=INT --kill-after=60 600 .venv/bin/python -m tests.support.compose.prepare) || status=$?
    if [ "$status" -eq "$unavailable" ] || [ "$status" -eq 124 ]; then
        loud "NOT RUN: make test-compose, although its files changed: $(tail -n 1 <<<"${reason:-no container within 600 s}")"
        return 0
    fi
    [ "$status" -eq 0 ] || return "$status"
    run "$compose_limit_s" tools/test_compose.sh
}

status=0
if is_changed "${slurm[@]}"; then run_slurm || status=$?; fi
if is_changed "${compose[@]}"; then run_compose || status=$?; fi
exit "$status"
