#!/usr/bin/env bash
# The part of PostgreSQL's image that docker-compose.yaml relies on: an empty volume is initialised with the scripts of
# /docker-entrypoint-initdb.d, then the server starts as its user.
set -euo pipefail
# Other commands run as they are, as in that image.
[ "$1" = postgres ] || exec "$@"
if [ "$(id -u)" = 0 ]; then
    install --directory --owner postgres --group postgres --mode 700 "$PGDATA" /var/run/postgresql
    exec setpriv --reuid postgres --regid postgres --init-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    initdb --encoding=UTF8 --username=postgres --pwfile="$POSTGRES_PASSWORD_FILE" --auth-local=trust --auth-host=scram-sha-256 >/dev/null
    echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
    pg_ctl --wait --silent --options="-c listen_addresses=''" start
    for script in /docker-entrypoint-initdb.d/*.sh; do
        # shellcheck disable=SC1090
        . "$script"
    done
    pg_ctl --wait --silent stop
fi
exec "$@" -c listen_addresses='*'
