timeout -k 5 20 env TZ=UTC0 LC_ALL=C SLURM_TIME_FORMAT=standard squeue --me --noheader --states=all --name=tipc-r1-1 '--format=%i|%T|%r|%V|%S|%N|%j'
