#!/bin/sh
# Makes the toy's data.
set -eu
case "$2" in
    lite_train_*|whole_*) ;;
    *) echo "prepare.sh: unknown mode $2" >&2; exit 2 ;;
esac
python -c 'import sys; print("prepared with", sys.executable)'
mkdir -p images
for i in 0 1 2; do echo "$i" > "images/$i.png"; done
