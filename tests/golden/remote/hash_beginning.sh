/bin/sh -c 'head -c "$2" < "$1" | sha256sum' tipcflow '/data/it'"'"'s here' 7
