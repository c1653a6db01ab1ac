timeout -k 5 20 env TZ=UTC0 LC_ALL=C SLURM_TIME_FORMAT=standard /bin/sh -c 'unset SLURM_CLUSTERS $(env | sed -nE '"'"'s/^((SQUEUE|SINFO|SCONTROL|SCANCEL|SBATCH)_[A-Z0-9_]*)=.*/\1/p'"'"')
exec "$@"' tipcflow /bin/sh -c 'nodes=$(scontrol -o show node "$1") || exit 1
printf '"'"'%s\n'"'"' "$nodes"
names=$(printf '"'"'%s\n'"'"' "$nodes" | sed -n '"'"'s/ NodeAddr=\([^ ]*\).*/ NodeAddr=\1/
s/.* NodeAddr=\([^ ]*[^ 0-9.][^ ]*\).*/255.255.255.255 \1/p'"'"')
[ -z "$names" ] || getent ahosts $names || :' tipcflow 'n[1-4]'
