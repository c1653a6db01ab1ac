#!/usr/bin/env bash
# Makes the data that a chain needs, from a fixed seed; downloads and installs nothing.
#   bash test_tipc/prepare.sh PARAMS MODE
# Run it from the suite's root folder. It may be run again: what is there already is left alone.
set -euo pipefail

fail() {
    echo "prepare.sh: $1" >&2
    exit "${2:-2}"
}

[ $# -eq 2 ] || fail "expected: bash test_tipc/prepare.sh PARAMS MODE"
params=$1
mode=$2
[ -f train.py ] || fail "run me from the suite's root folder (no train.py in $PWD)"
[ -f "$params" ] || fail "params file $params is missing"
model=$(sed -n 's/^model_name:\([^:]*\).*/\1/p' "$params" | head -n 1)
[ "$model" = mobilenet_v3_small ] || fail "$params: model_name '$model' is not known, expected mobilenet_v3_small"

train=128 val=60 images=20
case "$mode" in
    lite_train_lite_infer | benchmark_train) ;;
    lite_train_whole_infer) images=80 ;;
    whole_train_whole_infer) train=1600 val=300 images=80 ;;
    whole_infer) images=80 ;;
    *) fail "unknown mode '$mode': expected lite_train_lite_infer, lite_train_whole_infer, whole_train_whole_infer, whole_infer or benchmark_train" ;;
esac

command -v python > /dev/null || fail "there is no python on PATH" 3
# Looked up, not imported: importing Paddle takes seconds, and the training soon shows whether it works.
missing=$(python - paddle numpy PIL setuptools << 'EOF'
import importlib.util, sys
print(*[name for name in sys.argv[1:] if importlib.util.find_spec(name) is None])
EOF
)
[ -z "$missing" ] || fail "$(command -v python) lacks: $missing (pip install -r requirements.txt)" 3

echo "prepare.sh: $mode for $model with $(command -v python)"
python tools/make_data.py --train=$train --val=$val --images=$images

if [ "$mode" = whole_infer ]; then
    weights=pretrain_models/mobilenet_v3_small_pretrained.pdparams
    if [ -f "$weights" ]; then
        echo "$weights: there already"
    else
        work=$(mktemp -d pretrain_models.XXXXXX)
        trap 'rm -rf "$work"' EXIT
        python train.py --use-gpu=False --epochs=8 --batch-size=8 --print-freq=10 --output-dir="$work" > "$work/out" 2>&1 \
            || { tail -n 20 "$work/out" >&2; fail "training the pretrained weights failed" 1; }
        mkdir -p pretrain_models
        mv "$work/latest.pdparams" "$weights"
        echo "$weights: made by a short training"
    fi
fi
