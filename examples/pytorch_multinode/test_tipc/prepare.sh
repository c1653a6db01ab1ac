#!/usr/bin/env bash
# Generates the data that a chain needs, from a fixed seed; downloads and installs nothing.
#   bash test_tipc/prepare.sh PARAMS MODE
# Run it from the suite's root folder. It may be run again: existing data is kept.
set -euo pipefail

fail() {
    echo "prepare.sh: $1" >&2
    exit "${2:-2}"
}

[ $# -eq 2 ] || fail "expected: bash test_tipc/prepare.sh PARAMS MODE"
params=$1
mode=$2
[ -f mmmg_toy.py ] || fail "run this from the suite's root folder (no mmmg_toy.py in $PWD)"
[ -f "$params" ] || fail "params file $params is missing"
model=$(sed -n 's/^model_name:\([^:]*\).*/\1/p' "$params" | head -n 1)
case "$mode" in
    lite_train_lite_infer | lite_train_whole_infer) train=1024 test=200 ;;
    whole_train_whole_infer) train=6000 test=1000 ;;
    *) fail "unknown mode '$mode': expected lite_train_lite_infer, lite_train_whole_infer or whole_train_whole_infer" ;;
esac

command -v python > /dev/null || fail "there is no python on PATH" 3
missing=$(python - torch numpy << 'EOF'
import importlib.util, sys
print(*[name for name in sys.argv[1:] if importlib.util.find_spec(name) is None])
EOF
)
[ -z "$missing" ] || fail "$(command -v python) lacks: $missing (requirements.txt)" 3

echo "prepare.sh: $mode for $model with $(command -v python)"
[ "$model" = toy ] || python tools/make_data.py --root ./data --train $train --test $test
