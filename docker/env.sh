#!/usr/bin/env bash
# Generates the secrets and keys of docker-compose.yaml in .env (mode 0600). Existing values are kept.
# Usage: docker/env.sh [FILE]
set -euo pipefail
umask 077
checkout=$(dirname "$0")/..
file=${1:-"$checkout/.env"}

for tool in ssh-keygen base64 od; do
    command -v "$tool" >/dev/null || { echo "error: $tool is needed" >&2; exit 2; }
done
if [ -e "$file" ] && [ -n "$(find "$file" -perm /077)" ]; then
    echo "error: $file may be read by others; chmod 600 $file" >&2
    exit 2
fi
# Containers mount these, and their users are not the owner of the checkout.
hidden=$(cd "$checkout" && find dags configs docker/postgres_init.sh docker/redis.sh ! -perm -004 -print -quit)
if [ -n "$hidden" ]; then
    echo "error: $hidden is not readable for the containers' users; run chmod -R a+rX dags configs docker" >&2
    exit 2
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -e "$file" ]; then cp "$file" "$work/env"; else : >"$work/env"; fi
# Terminate an incomplete last line before appending.
[ -z "$(tail -c 1 "$work/env")" ] || echo >>"$work/env"

has() { grep -q "^$1=." "$work/env"; }
add() { has "$1" || printf '%s=%s\n' "$1" "$2" >>"$work/env"; }
# 64 characters that need no quoting in a URL, a shell or YAML; HMAC keys of SHA-512 need as many bytes.
word() { od -An -tx1 -N32 /dev/urandom | tr -d ' \n'; }
one_line() { base64 | tr -d '\n'; }
# 32 bytes in the URL-safe alphabet of Fernet.
fernet() { head -c 32 /dev/urandom | one_line | tr '+/' '-_'; }
# A key pair: NAME is the private key in one line, NAME_PUB the public key.
key_pair() {
    if has "$1" && has "$1_PUB"; then return; fi
    if has "$1" || has "$1_PUB"; then echo "error: $file has half of the pair $1, $1_PUB" >&2; exit 2; fi
    ssh-keygen -q -t ed25519 -N '' -C "$2" -f "$work/$1"
    add "$1" "$(one_line <"$work/$1")"
    add "$1_PUB" "$(cut -d' ' -f1,2 "$work/$1.pub")"
}

for name in POSTGRES_PASSWORD AIRFLOW_DB_PASSWORD METRICS_DB_PASSWORD METRICS_READER_PASSWORD \
    REDIS_PASSWORD AIRFLOW_ADMIN_PASSWORD AIRFLOW_CI_PASSWORD AIRFLOW_SECRET_KEY AIRFLOW_JWT_SECRET; do
    add "$name" "$(word)"
done
add AIRFLOW_FERNET_KEY "$(fernet)"
key_pair NODE_LOGIN_KEY tipcflow
key_pair NODE_1_HOST_KEY node-1
key_pair NODE_2_HOST_KEY node-2

mv "$work/env" "$file"
echo "$file is complete. Airflow's login is admin; its password is AIRFLOW_ADMIN_PASSWORD in that file."
