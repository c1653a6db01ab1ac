timeout -k 5 60 /bin/sh -c 'unset SLURM_CLUSTERS $(env | sed -nE '"'"'s/^((SQUEUE|SINFO|SCONTROL|SCANCEL|SBATCH)_[A-Z0-9_]*)=.*/\1/p'"'"')
exec "$@"' tipcflow sbatch --parsable --job-name=tipc-r1-1 --nodes=1 --ntasks-per-node=1 --exclusive --mem=0 --time=30 --no-requeue --chdir=/ --input=/dev/null --output=/dev/null --export=ALL
