/bin/sh -c 'set -eu
mkdir -p -- "$1"
cd -- "$1"
printf %s '"'"'#!/bin/sh
exec /opt/env/bin/python "$@"
'"'"' > python.tmp
chmod 755 python.tmp; mv -f python.tmp python
printf %s '"'"'#!/bin/sh
exec /opt/env/bin/python -m pip "$@"
'"'"' > pip.tmp
chmod 755 pip.tmp; mv -f pip.tmp pip' tipcflow /data/tipcflow/runs/r1/bin
