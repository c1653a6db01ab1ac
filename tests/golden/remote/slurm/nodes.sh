timeout -k 5 20 env TZ=UTC0 LC_ALL=C SLURM_TIME_FORMAT=standard /bin/sh -c 'names=$(scontrol show hostnames "$1") || exit 1
for name in $names; do
    line=$(scontrol -o show node "$name") || exit 1
    printf '"'"'node %s %s\n'"'"' "$name" "$line"
    address=$(printf '"'"'%s\n'"'"' "$line" | sed -n '"'"'s/.* NodeAddr=\([^ ]*\).*/\1/p'"'"')
    printf '"'"'address %s %s\n'"'"' "$name" "$(getent ahostsv4 "${address:-$name}" | sed -n '"'"'1s/ .*//p'"'"')"
done' tipcflow 'n[1-4]'
