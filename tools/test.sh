#!/usr/bin/env bash
# Runs the CI tests in two parallel lanes; --full adds the slow ones. Called by `make test` and `make test-full`.
# Tests that start local nodes, an Airflow or servers inspect the whole machine. If permitted, each lane runs in its own
# namespaces (processes, network, mounts); otherwise only tests that do not interfere run in parallel.
#
# A test that fails in a lane is rerun alone and listed at the end as flaky, which is a defect of the test or of the
# code. More than three such tests, or one that fails alone, fail the script.
set -uo pipefail
cd "$(dirname "$0")/.."
marks="not full"
[ "${1:-}" != --full ] || marks="full or not full"
plain=(tests/dag tests/ui)
nodes=(tests/cluster)
demo=(tests/e2e/test_demo_*.py tests/e2e/test_sample_suite.py)
airflow=(tests/e2e/faults)
liars=(tests/e2e/liars)
for file in tests/e2e/test_*.py; do
    [[ " ${demo[*]} " == *" $file "* ]] || airflow+=("$file")
done
for folder in tests/unit/*/; do
    case $(basename "$folder") in
        __pycache__) ;;
        airflow_api | devcluster | docker | transport) nodes+=("${folder%/}") ;;
        *) plain+=("${folder%/}") ;;
    esac
done

work=$(mktemp -d)
trap 'kill "${other:-}" 2>/dev/null; rm -rf "$work"' EXIT
own=(unshare --kill-child --pid --fork --mount-proc --mount --net --uts --ipc bash -c
    'mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns && ip link set lo up && "$@"; exit $?' own)
"${own[@]}" true 2>/dev/null || own=()
# Reset ignored signals (nohup, background jobs), which child processes would inherit, also in tests of these signals.
heeds=(env --default-signal=INT,HUP,QUIT)
"${heeds[@]}" true 2>/dev/null || heeds=()

# lane NAME FOLDER...: runs the tests and stores exit status and failed tests under NAME.
lane() {
    local name=$1 status=0
    shift
    "${own[@]}" "${heeds[@]}" .venv/bin/pytest -m "$marks" -o cache_dir="$work/$name" "$@" || status=$?
    echo "$status" >"$work/$name.status"
    return "$status"
}

# again NAME FOLDER...: reruns the failed tests of a lane; 0 if none failed, or if few failed and all pass now.
again() {
    local failed="$work/$1/v/cache/lastfailed"
    [ "$(cat "$work/$1.status")" != 0 ] || return 0
    [ -f "$failed" ] && [ "$(cat "$failed")" != "{}" ] || return 1
    .venv/bin/python - "$failed" "$1" >>"$work/unsteady" <<'EOF'
import json, sys
print(*(f"{sys.argv[2]}: {name}" for name in json.load(open(sys.argv[1]))), sep="\n")
EOF
    [ "$(wc -l <"$work/unsteady")" -le 3 ] || return 1
    printf '\n---- %s: rerun of failed tests\n' "$1"
    lane "$1" --last-failed --last-failed-no-failures=none "${@:2}"
}

(
    lane plain "${plain[@]}"
    first=$?
    [ ${#own[@]} -gt 0 ] || exit "$first"
    # All tests of this lane share one Airflow, which stops at the end.
    lane airflow "${airflow[@]}"
    second=$?
    lane liars "${liars[@]}"
    third=$?
    exit $((first | second | third))
) >"$work/said" 2>&1 &
other=$!
status=0
lane nodes "${nodes[@]}" || status=$((status | $?))
lane demo "${demo[@]}" || status=$((status | $?))
[ ${#own[@]} -gt 0 ] || lane liars "${liars[@]}" || status=$((status | $?))
[ ${#own[@]} -gt 0 ] || lane airflow "${airflow[@]}" || status=$((status | $?))
wait "$other" || status=$((status | $?))
other=
printf '\n---- second lane\n'
cat "$work/said"

if [ "$status" -eq 1 ]; then
    status=0
    again plain "${plain[@]}" || status=1
    again airflow "${airflow[@]}" || status=1
    again nodes "${nodes[@]}" || status=1
    again demo "${demo[@]}" || status=1
    again liars "${liars[@]}" || status=1
fi
if [ -s "$work/unsteady" ]; then
    printf '\n---- flaky tests (failed in parallel, passed alone)\n'
    cat "$work/unsteady"
fi
printf '\n---- exit %s\n' "$status"
exit "$status"
