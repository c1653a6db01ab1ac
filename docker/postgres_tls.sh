#!/usr/bin/env bash
# Starts PostgreSQL with TLS (compose.tls.yaml). PostgreSQL reads a key only if no other user may, so it gets a copy.
set -euo pipefail
install -d -o postgres -g postgres -m 700 /run/tls
install -o postgres -g postgres -m 600 /run/secrets/server_key /run/tls/server.key
exec docker-entrypoint.sh postgres -c ssl=on -c ssl_min_protocol_version=TLSv1.2 -c ssl_key_file=/run/tls/server.key \
    -c ssl_cert_file=/run/secrets/server_crt -c ssl_ca_file=/run/secrets/ca_crt -c hba_file=/pg_hba.conf
