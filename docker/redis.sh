#!/bin/sh
# Starts Redis with the password of its secret file, passed on stdin because command lines are visible to all users.
# Each message is on disk before it is confirmed: a task whose message is lost is queued again a minute later.
set -eu
password=$(cat "${REDIS_PASSWORD_FILE:?run docker/env.sh}")
# No pipe: the shell would stay the first process of the container, which ignores docker's SIGTERM.
exec redis-server - "$@" <<CONFIG
requirepass $password
save ""
appendonly yes
appendfsync always
CONFIG
