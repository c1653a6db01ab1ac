timeout -k 5 20 env TZ=UTC0 LC_ALL=C SLURM_TIME_FORMAT=standard /bin/sh -c 'names=$(scontrol show hostnames "$1") || exit 1
for name in $names; do
    line=$(scontrol -o show node "$name") || exit 1
    printf '"'"'node %s %s\n'"'"' "$name" "$line"
    address=$(printf '"'"'%s\n'"'"' "$line" | sed -n '"'"'s/.* NodeAddr=\([^ ]*\).*/\1/p'"'"')
    address=${address:-$name}
    case $address in
    *[!0-9.]*) address=$(getent ahostsv4 "$address" | sed -n '"'"'1s/ .*//p'"'"') ;;
    esac
    printf '"'"'address %s %s\n'"'"' "$name" "$address"
done' tipcflow 'n[1-4]'
