/opt/env/bin/python -I -S -X utf8 /data/tipcflow/bin/runner-0123456789ab.py facts /data/tipcflow --python /opt/env/bin/python --peers b=10.0.0.2,c=10.0.0.3:2222 --port 22
