rm -rf -- /data/tipcflow/runs/r1 /data/tipcflow/jobs/r1
