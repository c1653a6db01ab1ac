timeout -k 5 60 sbatch --parsable --job-name=tipc-r1-1 --nodes=1 --ntasks-per-node=1 --exclusive --mem=0 --time=30 --no-requeue --chdir=/ --input=/dev/null --output=/dev/null --export=ALL
