env TIPCFLOW_HELPER=upload 'TIPCFLOW_FOR=/data/it'"'"'s here' TIPCFLOW_DEADLINE=330 timeout -k 5 330 /bin/sh -c 'set -eu
umask 077
folder=$(dirname -- "$1"; echo .)
folder=${folder%??}
mkdir -p -- "$folder"
temporary="$1.$$.tmp"
trap '"'"'rm -f -- "$temporary"'"'"' EXIT
trap '"'"'exit 1'"'"' TERM HUP INT
cat > "$temporary"
chmod "$2" -- "$temporary"
mv -f -- "$temporary" "$1"
trap - EXIT' tipcflow '/data/it'"'"'s here' 600
