env TIPCFLOW_HELPER=reap TIPCFLOW_FOR=/data/tipcflow TIPCFLOW_DEADLINE=180 /opt/env/bin/python -I -S -X utf8 /data/tipcflow/bin/runner-0123456789ab.py reap /data/tipcflow --by operator
