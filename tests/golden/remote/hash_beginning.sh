env TIPCFLOW_HELPER=fetch 'TIPCFLOW_FOR=/data/it'"'"'s here' TIPCFLOW_DEADLINE=330 timeout -k 5 330 /bin/sh -c '[ -f "$1" ] && head -c "$2" < "$1" | sha256sum' tipcflow '/data/it'"'"'s here' 7
