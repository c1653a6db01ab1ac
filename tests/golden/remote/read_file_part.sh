env TIPCFLOW_HELPER=fetch TIPCFLOW_FOR=/data/file TIPCFLOW_DEADLINE=330 timeout -k 5 330 /bin/sh -c '[ -f "$1" ] || { echo "$1: no such file" >&2; exit 66; }
tail -c "+$2" -- "$1" | head -c "$3"' tipcflow /data/file 11 5
