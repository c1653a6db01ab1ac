/bin/sh -c '[ -f "$1" ] && head -c "$2" < "$1" | sha256sum' tipcflow '/data/it'"'"'s here' 7
