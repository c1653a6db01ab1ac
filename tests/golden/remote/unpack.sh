/bin/sh -c 'set -eu
archive=$1 want=$2 root=$3
if [ -d "$root" ] && [ "$(cat -- "$root.sha256" 2>/dev/null)" = "$want" ]; then exit 0; fi
got=$(sha256sum < "$archive")
if [ "${got%% *}" != "$want" ]; then
    echo "$archive: sha256 is ${got%% *}, not $want" >&2
    rm -f -- "$archive"
    exit 65
fi
rm -rf -- "$root" "$root.unpacking"
mkdir -p -- "$root.unpacking"
tar -xzof "$archive" -C "$root.unpacking"
mv -- "$root.unpacking" "$root"
printf '"'"'%s\n'"'"' "$want" > "$root.sha256"' tipcflow /data/tipcflow/suites/0000000000000000000000000000000000000000000000000000000000000000.tar.gz 0000000000000000000000000000000000000000000000000000000000000000 /data/tipcflow/runs/r1/src
