#!/bin/sh
# Starts Redis with the password of .env: as configuration on its input, since arguments can be seen by everybody.
set -eu
: "${REDIS_PASSWORD:?run docker/env.sh}"
printf 'requirepass %s\nsave ""\nappendonly no\n' "$REDIS_PASSWORD" | exec redis-server - "$@"
