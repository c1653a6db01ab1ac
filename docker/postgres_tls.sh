#!/usr/bin/env bash
# Starts PostgreSQL with TLS (compose.tls.yaml). PostgreSQL reads a key only if no other user may, so it gets a copy.
set -euo pipefail
gateway=
# Of the default route, in hexadecimal digits, the last byte first.
while read -r _ destination address _; do
    [ "$destination" = 00000000 ] || continue
    printf -v gateway '%d.%d.%d.%d/32' "0x${address:6:2}" "0x${address:4:2}" "0x${address:2:2}" "0x${address:0:2}"
    break
done </proc/net/route
[ -n "$gateway" ] || { echo "error: no default route; which clients of the published port need certificates is unknown" >&2; exit 1; }
install -d -o postgres -g postgres -m 700 /run/tls
install -o postgres -g postgres -m 600 /run/secrets/server_key /run/tls/server.key
install -o postgres -g postgres -m 600 <(sed "s#GATEWAY#$gateway#" /pg_hba.conf) /run/tls/pg_hba.conf
exec docker-entrypoint.sh postgres -c ssl=on -c ssl_min_protocol_version=TLSv1.2 -c ssl_key_file=/run/tls/server.key \
    -c ssl_cert_file=/run/secrets/server_crt -c ssl_ca_file=/run/secrets/ca_crt -c hba_file=/run/tls/pg_hba.conf
