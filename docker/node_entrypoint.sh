#!/usr/bin/env bash
# Starts a node's SSH server with the keys from .env; the host key is removed from the environment first.
set -euo pipefail
folder=${1:-/etc/tipcflow}
: "${NODE_HOST_KEY:?run docker/env.sh}" "${NODE_LOGIN_KEY_PUB:?run docker/env.sh}"
(umask 077; printf '%s' "$NODE_HOST_KEY" | base64 -d >"$folder/host_key")
printf '%s\n' "$NODE_LOGIN_KEY_PUB" >"$folder/authorized_keys"
chmod 644 "$folder/authorized_keys"
unset NODE_HOST_KEY NODE_LOGIN_KEY_PUB
exec /usr/sbin/sshd -D -e -f "$folder/sshd_config"
