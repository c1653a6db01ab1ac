#!/usr/bin/env bash
# Runs the tests that CI runs, in two lots at once: those that make local nodes, an Airflow or servers, one after the
# other, since some of them look at the whole machine; beside them those that do not mind. Called by `make test`.
set -uo pipefail
cd "$(dirname "$0")/.."
pytest=(.venv/bin/pytest -m "not full")
beside=(tests/dag tests/ui)
alone=(tests/cluster tests/e2e)
for folder in tests/unit/*/; do
    case $(basename "$folder") in
        __pycache__) ;;
        demo | docker | transport) alone+=("${folder%/}") ;;
        *) beside+=("${folder%/}") ;;
    esac
done

said=$(mktemp)
trap 'rm -f "$said"; kill "${other:-}" 2>/dev/null' EXIT
# With job control, or it would be started with Ctrl-C ignored, which tests of Ctrl-C are about.
set -m
"${pytest[@]}" -p no:cacheprovider "${beside[@]}" >"$said" 2>&1 &
other=$!
set +m
status=0
"${pytest[@]}" "${alone[@]}" || status=$?
closing="the tests that ran one after the other: exit $status"
wait "$other" || status=$?
other=
printf '\n---- the tests that ran beside\n'
cat "$said"
printf '\n---- %s\n' "$closing"
exit "$status"
