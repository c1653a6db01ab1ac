/bin/sh -c 'set -eu
umask 077
mkdir -p "$1"
cd "$1"
mkdir -p bin suites runs jobs slots
: > .writable
rm .writable' tipcflow /data/tipcflow
