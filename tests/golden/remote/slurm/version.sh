timeout -k 5 20 env TZ=UTC0 LC_ALL=C SLURM_TIME_FORMAT=standard scancel --version
