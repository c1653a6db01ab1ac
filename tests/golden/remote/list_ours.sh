env TIPCFLOW_HELPER=list TIPCFLOW_FOR=/data/tipcflow TIPCFLOW_DEADLINE=90 /opt/env/bin/python -I -S -X utf8 /data/tipcflow/bin/runner-0123456789ab.py list /data/tipcflow
