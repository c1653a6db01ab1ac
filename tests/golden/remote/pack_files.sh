/bin/sh -c 'set -eu
cd -- "$1"
shift
for name do
    shift
    if [ -e "$name" ]; then set -- "$@" "./$name"; fi
done
[ $# -gt 0 ] || set -- --files-from=/dev/null
exec tar -cf - --exclude='"'"'envlog.*'"'"' --exclude='"'"'backup_env.*'"'"' --exclude='"'"'*.??????.log'"'"' "$@"' tipcflow /data/root 'a b' c
