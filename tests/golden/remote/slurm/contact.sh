timeout -k 5 45 env -u SLURM_CLUSTERS srun --jobid=7 --overlap --nodes=2 --ntasks=2 --nodelist=n1,n2 --ntasks-per-node=1 --mem=0 --cpu-bind=none --mpi=none --quiet --job-name=tipcflow /opt/bin/python -I -S -c '# starter.py
sys.exit(greet())'
