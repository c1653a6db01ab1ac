timeout -k 5 20 env TZ=UTC0 LC_ALL=C SLURM_TIME_FORMAT=standard /bin/sh -c 'unset SLURM_CLUSTERS $(env | sed -nE '"'"'s/^((SQUEUE|SINFO|SCONTROL|SCANCEL|SBATCH)_[A-Z0-9_]*)=.*/\1/p'"'"')
exec "$@"' tipcflow squeue --me --noheader --states=all --name=tipc-r1-1 '--format=%i|%T|%r|%V|%S|%N|%j'
