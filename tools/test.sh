#!/usr/bin/env bash
# Runs the CI tests in lanes, several at a time; --full adds the slow ones. Called by `make test` and `make test-full`.
# Tests marked quiet judge measured speeds: they run at the end, without other lanes, in the lane quiet.
# Tests that start local nodes, an Airflow or servers inspect the whole machine. If permitted, each lane runs in its own
# namespaces (processes, network, mounts); otherwise only tests that do not interfere run in parallel.
# /run/tipcflow lists this user's local nodes: a lane would otherwise remove the nodes of killed commands of another lane.
# Lanes wait for nodes and servers a quarter to a half of their time: on two cores, three lanes use both.
#
# A test that fails in a lane is rerun alone. If it passes then, it is flaky, which fails the script unless
# tests/quarantine.toml names the test; tools/quarantine.py decides.
set -uo pipefail
cd "$(dirname "$0")/.."
marks="not full and not quiet"
quiet=()
if [ "${1:-}" = --full ]; then
    marks="not quiet"
    quiet=(tests/cluster tests/e2e)
fi
slots=$(($(nproc) + 1))
plain=(tests/dag tests/ui)
remote=()
nodes=(tests/cluster/test_*.py)
faults=()
demo=(tests/e2e/test_demo_*.py tests/e2e/test_sample_suite.py)
airflow=()
liars=(tests/e2e/liars)
shopt -s nullglob
for folder in tests/cluster/*/; do
    [ "$(basename "$folder")" = __pycache__ ] || faults+=("${folder%/}")
done
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
        remote | store) remote+=("${folder%/}") ;;
        *) plain+=("${folder%/}") ;;
    esac
done

work=$(mktemp -d)
declare -A chains=()
# Ends the lanes with an interrupt, so that tests remove what they started; those that do not end within a minute, by force.
stop() {
    local signal=INT
    for _ in {1..60}; do
        for chain in "${!chains[@]}"; do
            kill "-$signal" -- "-$chain" 2>/dev/null || unset "chains[$chain]"
        done
        [ ${#chains[@]} -gt 0 ] || break
        signal=0
        sleep 1
    done
    for chain in "${!chains[@]}"; do
        kill -KILL -- "-$chain"
    done
    rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
# Thousands of databases and suites: if there is enough memory, each lane has a /tmp in it, with the folder of the results. Tests
# with PostgreSQL, whose databases are copies of a template, take half the time then. Not if something that the tests use is in /tmp.
memory=""
if [ "$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)" -gt $((16 * 1024 * 1024)) ] && [[ "$(env)" != *[=:]/tmp/* ]]; then
    memory=$work
fi
own=(unshare --kill-child --pid --fork --mount-proc --mount --net --uts --ipc bash -c
    'for own in /run/netns /run/tipcflow; do mkdir -p -m 700 $own && mount -t tmpfs -o mode=700 tmpfs $own || exit; done
    if [ -n "$0" ]; then
        mkdir /run/tipcflow/results && mount --bind "$0" /run/tipcflow/results && mount -t tmpfs -o mode=1777 tmpfs /tmp &&
            mkdir -p "$0" && mount --move /run/tipcflow/results "$0" && rmdir /run/tipcflow/results || exit
    fi
    ip link set lo up && "$@"; exit $?' "$memory")
"${own[@]}" true 2>/dev/null || own=()
# Reset ignored signals (nohup, background jobs), which child processes would inherit, also in tests of these signals.
reset_signals=(env --default-signal=INT,HUP,QUIT)
"${reset_signals[@]}" true 2>/dev/null || reset_signals=()

# Of each lane.
declare -A folders=(
    [airflow]="${airflow[*]}" [nodes]="${nodes[*]}" [faults]="${faults[*]}" [plain]="${plain[*]}" [remote]="${remote[*]}"
    [liars]="${liars[*]}" [demo]="${demo[*]}" [quiet]="${quiet[*]}"
)
# The longest ones first. All tests of the lane airflow share one Airflow, which stops at the end.
lanes=()
for name in airflow nodes faults plain remote liars demo; do
    [ -z "${folders[$name]}" ] || lanes+=("$name")
done

# lane NAME ATTEMPT [OPTION...]: runs the tests of a lane and stores exit status and failed tests under NAME.ATTEMPT.
lane() {
    local name=$1 attempt=$2 status=0 marks=$marks
    shift 2
    [ "$name" != quiet ] || marks=quiet
    local report=$work/$name.$attempt.xml
    # shellcheck disable=SC2086 (a list of folders)
    "${own[@]}" "${reset_signals[@]}" .venv/bin/pytest -m "$marks" -o cache_dir="$work/$name" --junitxml="$report" "$@" \
        ${folders[$name]} </dev/null || status=$?
    echo "$status" >"$work/$name.$attempt.status"
    cp "$work/$name/v/cache/lastfailed" "$work/$name.$attempt.failed" 2>/dev/null
    return "$status"
}

# chain NAME...: runs lanes one after the other. Prints their progress at once, and all of a lane's output when it has ended.
chain() {
    local name status
    for name in "$@"; do
        [ -n "${folders[$name]}" ] || continue
        SECONDS=0
        lane "$name" 1 2>&1 |
            (trap '' INT && tee "$work/$name.out" | grep --line-buffered '%]$' | sed -u "s/^/$name: /")
        status=$(cat "$work/$name.1.status")
        printf '\n---- lane %s: %s s, exit status of pytest %s\n%s\n' "$name" "$SECONDS" "$status" "$(cat "$work/$name.out")"
    done
}

.venv/bin/python tools/quarantine.py check || exit 1
# The tests start thousands of processes: each would compile the sources again if PYTHONDONTWRITEBYTECODE is set.
.venv/bin/python -m compileall -q src operators plugins || exit 1
if [ ${#own[@]} -gt 0 ]; then
    waiting=("${lanes[@]}")
else
    waiting=("plain remote" "airflow nodes faults liars demo")
    slots=2
fi
# Each job has a process group of its own, which `stop` ends.
set -m
for names in "${waiting[@]}"; do
    [ "$(jobs -pr | wc -l)" -lt "$slots" ] || wait -n
    # shellcheck disable=SC2086 (a list of lanes)
    chain $names &
    chains[$!]=
done
wait
if [ ${#quiet[@]} -gt 0 ]; then
    lanes+=(quiet)
    chain quiet &
    chains[$!]=
    wait
fi
chains=()
set +m

for name in $(.venv/bin/python tools/quarantine.py rerun "$work" "${lanes[@]}"); do
    printf '\n---- %s: rerun of failed tests\n' "$name"
    lane "$name" 2 --last-failed --last-failed-no-failures=none
done
printf '\n---- lanes, before reruns\n'
for name in "${lanes[@]}"; do
    # Pytest's summary begins the line, for programs that search it.
    printf '%s: %s\n' "$(tail -n 1 "$work/$name.out")" "$name"
done
printf '\n---- verdict\n'
status=0
.venv/bin/python tools/quarantine.py verdict "$work" "${lanes[@]}" || status=$?
printf '\n---- exit %s\n' "$status"
exit "$status"
