#!/usr/bin/env bash
# Runs the tests that CI runs, in two lanes at once; with --full the long ones too. Called by `make test` and
# `make test-full`. Tests that make local nodes, an Airflow or servers look at the whole machine: where we may, each
# lane gets a machine of its own (namespaces of processes, network and mounts); where we may not, only tests that do
# not mind run beside them.
#
# A test that fails in this crowd is asked once more, alone, and named in the last lines: it is unsteady, and that is a
# defect of the test or of what it tests. More than three such tests, or one that fails alone, fail the whole.
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
# Who is started with Ctrl-C or hang-ups ignored (nohup, a job in the background) hands that on, also to what tests
# of these signals start.
heeds=(env --default-signal=INT,HUP,QUIT)
"${heeds[@]}" true 2>/dev/null || heeds=()

# lane NAME FOLDER...: its exit status and its failed tests are remembered under its name.
lane() {
    local name=$1 status=0
    shift
    "${own[@]}" "${heeds[@]}" .venv/bin/pytest -m "$marks" -o cache_dir="$work/$name" "$@" || status=$?
    echo "$status" >"$work/$name.status"
    return "$status"
}

# again NAME FOLDER...: the failed tests of a lane, alone; 0 when the lane was well, or few failed and they passed.
again() {
    local failed="$work/$1/v/cache/lastfailed"
    [ "$(cat "$work/$1.status")" != 0 ] || return 0
    [ -f "$failed" ] && [ "$(cat "$failed")" != "{}" ] || return 1
    .venv/bin/python - "$failed" "$1" >>"$work/unsteady" <<'EOF'
import json, sys
print(*(f"{sys.argv[2]}: {name}" for name in json.load(open(sys.argv[1]))), sep="\n")
EOF
    [ "$(wc -l <"$work/unsteady")" -le 3 ] || return 1
    printf '\n---- %s: what failed is asked once more, alone\n' "$1"
    lane "$1" --last-failed --last-failed-no-failures=none "${@:2}"
}

(
    lane plain "${plain[@]}"
    first=$?
    [ ${#own[@]} -gt 0 ] || exit "$first"
    # One Airflow for all of them, which is gone at their end.
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
printf '\n---- the other lane\n'
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
    printf '\n---- failed beside the others\n'
    cat "$work/unsteady"
fi
printf '\n---- exit %s\n' "$status"
exit "$status"
