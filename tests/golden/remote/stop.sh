/opt/env/bin/python -I -S -X utf8 /data/tipcflow/bin/runner-0123456789ab.py stop /data/tipcflow/jobs/r1/train%2Fnorm_train/1 'node b: it'"'"'s gone' --by peer
