#!/usr/bin/env bash
# Runs the CI tests in two parallel lanes; --full adds the slow ones. Called by `make test` and `make test-full`.
# Tests that start local nodes, an Airflow or servers inspect the whole machine. If permitted, each lane runs in its own
# namespaces (processes, network, mounts); otherwise only tests that do not interfere run in parallel.
#
# A test that fails in a lane is rerun alone. If it passes then, it is flaky, which fails the script unless
# tests/quarantine.toml names the test; tools/quarantine.py decides.
set -uo pipefail
cd "$(dirname "$0")/.."
marks="not full"
[ "${1:-}" != --full ] || marks="full or not full"
plain=(tests/dag tests/ui)
nodes=(tests/cluster)
demo=(tests/e2e/test_demo_*.py tests/e2e/test_sample_suite.py)
airflow=()
liars=(tests/e2e/liars)
for folder in tests/e2e/*/; do
    case $(basename "$folder") in
        __pycache__ | liars) ;;
        *) airflow+=("${folder%/}") ;;
    esac
done
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
reset_signals=(env --default-signal=INT,HUP,QUIT)
"${reset_signals[@]}" true 2>/dev/null || reset_signals=()

declare -A folders=(
    [plain]="${plain[*]}" [airflow]="${airflow[*]}" [nodes]="${nodes[*]}" [demo]="${demo[*]}" [liars]="${liars[*]}"
)
lanes=(plain airflow nodes demo liars)

# lane NAME ATTEMPT [OPTION...]: runs the tests of a lane and stores exit status and failed tests under NAME.ATTEMPT.
lane() {
    local name=$1 attempt=$2 status=0
    shift 2
    local report=$work/$name.$attempt.xml
    # shellcheck disable=SC2086 (a list of folders)
    "${own[@]}" "${reset_signals[@]}" .venv/bin/pytest -m "$marks" -o cache_dir="$work/$name" --junitxml="$report" "$@" \
        ${folders[$name]} || status=$?
    echo "$status" >"$work/$name.$attempt.status"
    cp "$work/$name/v/cache/lastfailed" "$work/$name.$attempt.failed" 2>/dev/null
    return "$status"
}

.venv/bin/python tools/quarantine.py check || exit 1
(
    lane plain 1
    [ ${#own[@]} -gt 0 ] || exit
    # All tests of this lane share one Airflow, which stops at the end.
    lane airflow 1
    # All faults of Airflow take as long as 200 honest runs.
    [ "${1:-}" = --full ] || lane liars 1
) >"$work/second" 2>&1 &
other=$!
lane nodes 1
lane demo 1
if [ "${1:-}" = --full ] || [ ${#own[@]} -eq 0 ]; then
    lane liars 1
fi
[ ${#own[@]} -gt 0 ] || lane airflow 1
wait "$other"
other=
printf '\n---- second lane\n'
cat "$work/second"

for name in $(.venv/bin/python tools/quarantine.py rerun "$work" "${lanes[@]}"); do
    printf '\n---- %s: rerun of failed tests\n' "$name"
    lane "$name" 2 --last-failed --last-failed-no-failures=none
done
printf '\n---- verdict\n'
status=0
.venv/bin/python tools/quarantine.py verdict "$work" "${lanes[@]}" || status=$?
printf '\n---- exit %s\n' "$status"
exit "$status"
