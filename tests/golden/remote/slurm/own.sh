timeout -k 5 20 env TZ=UTC0 LC_ALL=C SLURM_TIME_FORMAT=standard squeue --me --noheader --states=PENDING,CONFIGURING,RUNNING,SUSPENDED '--format=%i|%T|%r|%V|%S|%N|%j'
