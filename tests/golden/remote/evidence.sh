/opt/env/bin/python -I -S -X utf8 /data/tipcflow/bin/runner-0123456789ab.py evidence /data/tipcflow/jobs/r1/train%2Fnorm_train/1
