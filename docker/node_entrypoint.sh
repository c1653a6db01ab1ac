#!/usr/bin/env bash
# Starts a node's SSH server with its host key, which only root can read, and the public key that may log in.
set -euo pipefail
folder=${1:-/etc/tipcflow}
: "${NODE_HOST_KEY_FILE:?run docker/env.sh}" "${NODE_LOGIN_KEY_PUB:?run docker/env.sh}"
install -m 600 "$NODE_HOST_KEY_FILE" "$folder/host_key"
printf '%s\n' "$NODE_LOGIN_KEY_PUB" >"$folder/authorized_keys"
chmod 644 "$folder/authorized_keys"
unset NODE_HOST_KEY_FILE NODE_LOGIN_KEY_PUB
exec /usr/sbin/sshd -D -e -f "$folder/sshd_config"
