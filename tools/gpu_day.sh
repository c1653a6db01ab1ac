#!/usr/bin/env bash
# Runs everything that needs GPUs on this machine, and writes a report. Options: tools/gpu_day.sh --help
# The environment of tipcflow (.venv) is created if it is missing; with --wheels and --offline from the folder only.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
state=$(cd "$root" && realpath -m "${TIPCFLOW_HOME:-.tipcflow}")

install_tipcflow() {
    local wheels='' offline='' config
    while [ $# -gt 0 ]; do
        case $1 in
            --wheels) wheels=${2:-}; shift ;;
            --wheels=*) wheels=${1#*=} ;;
            --offline) offline=yes ;;
        esac
        shift
    done
    if [ -n "$offline" ] && [ -d "$wheels" ]; then
        wheels=$(realpath "$wheels")
        config=$(mktemp)
        echo 'no-index = true' >"$config"
        export PIP_NO_INDEX=1 PIP_FIND_LINKS=$wheels UV_FIND_LINKS=$wheels UV_CONFIG_FILE=$config
    fi
    # A subshell, because these variables must not reach the checks.
    "$root/tools/install.sh"
}

if [ ! -e "$root/.venv/.installed" ]; then (install_tipcflow "$@"); fi
PATH=$root/.venv/bin:$state/uv/bin:$PATH exec "$root/.venv/bin/python" -m devcluster.gpu_day.main "$@"
