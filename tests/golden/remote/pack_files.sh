env TIPCFLOW_HELPER=fetch TIPCFLOW_FOR=/data/root TIPCFLOW_DEADLINE=330 timeout -k 5 330 /bin/sh -c 'set -eu
cd -- "$1"
limit=$2 each=$3 left=$4 number=0
shift 4
for name do
    shift
    number=$((number + 1))
    kind=
    case $name in
        workerlog.* | */workerlog.*) if [ -h "./$name" ]; then kind=link; fi ;;
    esac
    if [ -z "$kind" ] && [ -e "./$name" ] && [ ! -f "./$name" ] && [ ! -d "./$name" ]; then
        kind=device
        if [ -p "./$name" ]; then kind=FIFO; elif [ -S "./$name" ]; then kind=socket; fi
    fi
    if [ "$kind" ]; then
        printf '"'"'%s 0 !%s\n'"'"' "$number" "$kind"
        continue
    fi
    if [ ! -f "./$name" ] || [ -h "./$name" ]; then continue; fi
    if ! size=$(wc -c < "./$name"); then
        printf '"'"'%s 0 -\n'"'"' "$number"
        continue
    fi
    size=$((size))
    hash=$(head -c "$limit" < "./$name" | sha256sum)
    printf '"'"'%s %s %s\n'"'"' "$number" "$size" "${hash%% *}"
    if [ "$size" -le "$each" ] && [ "$size" -le "$left" ]; then
        left=$((left - size))
        set -- "$@" "./$name"
    fi
done
echo
[ $# -gt 0 ] || set -- --files-from=/dev/null
exec tar -cf - --exclude='"'"'envlog.*'"'"' --exclude='"'"'backup_env.*'"'"' --exclude='"'"'*.[a-z][a-z][a-z][a-z][a-z][a-z].log'"'"' "$@"' tipcflow /data/root 100 100 16777216 'a b' c
