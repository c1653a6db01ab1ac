#!/bin/sh
# Starts Redis with the password from .env, passed on stdin because command lines are visible to all users.
# Each message is on disk before it is confirmed: a task whose message is lost stays queued for ten minutes.
set -eu
: "${REDIS_PASSWORD:?run docker/env.sh}"
# No pipe: the shell would stay the first process of the container, which ignores docker's SIGTERM.
exec redis-server - "$@" <<CONFIG
requirepass $REDIS_PASSWORD
save ""
appendonly yes
appendfsync always
CONFIG
