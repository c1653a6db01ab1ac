/bin/sh -c '[ -x "$1" ] || { echo "$1: no such interpreter" >&2; exit 67; }
exec "$1" -I -S -c '"'"'import sys
if sys.version_info < (3, 7):
    sys.stderr.write("%s is Python %s, 3.7 is needed" % (sys.executable, sys.version.split()[0]))
    sys.exit(67)
print(sys.version.split()[0])'"'"'' tipcflow /opt/env/bin/python
