/bin/sh -c 'set -eu
from=$1 root=$2 want=$3 needs=$4
shift 4
if [ -d "$root" ] && [ "$(cat -- "$root.sha256" 2>/dev/null)" = "$want" ]; then exit 0; fi
if [ ! -d "$from" ] || [ "$(cat -- "$from.sha256" 2>/dev/null)" != "$want" ]; then
    echo "$from no longer exists" >&2
    exit 66
fi
IFS=
while [ "$needs" -gt 0 ]; do
    found=
    for one in "$from"/$1; do if [ -e "$one" ]; then found=1; fi; done
    if [ -z "$found" ]; then
        echo "$from/$1 no longer exists" >&2
        exit 66
    fi
    shift
    needs=$((needs - 1))
done
rm -rf -- "$root" "$root.unpacking"
mkdir -p -- "${root%/*}"
if ! cp -al -- "$from" "$root.unpacking" 2>/dev/null; then
    rm -rf -- "$root.unpacking"
    cp -a -- "$from" "$root.unpacking"
fi
for one; do rm -f -- "$root.unpacking/$one"; done
mv -- "$root.unpacking" "$root"
printf '"'"'%s\n'"'"' "$want" > "$root.sha256"' tipcflow /data/tipcflow/runs/r1/src /data/tipcflow/runs/r2/src 0000000000000000000000000000000000000000000000000000000000000000 1 'out/*.pdparams' eval.log
