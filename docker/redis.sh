#!/bin/sh
# Starts Redis with the password from .env, passed on stdin because command lines are visible to all users.
set -eu
: "${REDIS_PASSWORD:?run docker/env.sh}"
printf 'requirepass %s\nsave ""\nappendonly no\n' "$REDIS_PASSWORD" | exec redis-server - "$@"
