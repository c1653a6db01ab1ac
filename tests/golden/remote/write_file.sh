/bin/sh -c 'set -eu
umask 077
folder=$(dirname -- "$1"; echo .)
folder=${folder%??}
mkdir -p -- "$folder"
temporary="$1.$$.tmp"
trap '"'"'rm -f -- "$temporary"'"'"' EXIT
cat > "$temporary"
chmod "$2" -- "$temporary"
mv -f -- "$temporary" "$1"
trap - EXIT' tipcflow '/data/it'"'"'s here' 600
