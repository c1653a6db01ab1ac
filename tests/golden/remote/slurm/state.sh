timeout -k 5 20 env TZ=UTC0 LC_ALL=C SLURM_TIME_FORMAT=standard squeue --noheader --states=all --jobs=7 '--format=%i|%T|%r|%V|%S|%N|%j'
