#!/usr/bin/env bash
# Runs the fast tests of docker-compose.yaml if what they test has changed, and names the tests of Slurm if theirs has.
# Called by .ci/run after `make test`.
#   tools/due_tests.sh SECONDS      SECONDS: time that is left
# Changed means: in the commits since the merge base with origin/main, on that branch in the last 20 commits. Where git cannot
# compare, as in a shallow clone, everything counts as changed. Exit status: 0 without a change, or if the machine cannot
# run containers, which a loud line states with the reason; otherwise that of the tests.
set -uo pipefail
cd "$(dirname "$0")/.."
left=$1
# From an empty cache the tests take 11 minutes (docs/measured.md).
limit_s=1200 least_s=700 unavailable=75
compose=(docker docker-compose.yaml 'compose.*.yaml' requirements operators)
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

# run_compose: runs the tests in the time that is left.
run_compose() {
    local reason status=0 seconds
    if [ "$left" -lt "$least_s" ]; then
        loud "NOT RUN: make test-compose, although its files changed: $left s are left, and it takes up to $least_s s"
        return 0
    fi
    reason=$(timeout --signal=INT --kill-after=60 600 .venv/bin/python -m tests.support.compose.prepare) || status=$?
    if [ "$status" -eq "$unavailable" ] || [ "$status" -eq 124 ]; then
        loud "NOT RUN: make test-compose, although its files changed: $(tail -n 1 <<<"${reason:-no container within 600 s}")"
        return 0
    fi
    [ "$status" -eq 0 ] || return "$status"
    seconds=$((left - SECONDS < limit_s ? left - SECONDS : limit_s))
    # The tests remove their containers after an interrupt.
    timeout --signal=INT --kill-after=180 "$seconds" tools/test_compose.sh --fast || status=$?
    [ "$status" -ne 124 ] || loud "FAILED: tools/test_compose.sh --fast took longer than $seconds s"
    return "$status"
}

if is_changed "${slurm[@]}"; then
    loud "NOT RUN: make test-slurm, although its files changed: it takes 20 minutes; start it by hand"
fi
if is_changed "${compose[@]}"; then
    run_compose
fi
