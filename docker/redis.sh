#!/bin/sh
# Starts Redis with the password from .env, passed on stdin because command lines are visible to all users.
# Each message is on disk before it is confirmed: a task whose message is lost stays queued for ten minutes.
set -eu
: "${REDIS_PASSWORD:?run docker/env.sh}"
printf 'requirepass %s\nsave ""\nappendonly yes\nappendfsync always\n' "$REDIS_PASSWORD" | exec redis-server - "$@"
