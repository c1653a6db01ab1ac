#!/usr/bin/env bash
# Generates the secrets and keys of docker-compose.yaml: a file per secret in .secrets (mode 0700), settings in .env.
# Existing values are kept. Secrets that .env contains are moved to files.
# Usage: docker/env.sh [FILE]      FILE: .env by default. TIPCFLOW_SECRETS, in the environment or in FILE, is another folder
# than .secrets next to FILE.
set -euo pipefail
umask 077
checkout=$(dirname "$0")/..
file=${1:-"$checkout/.env"}
# As for docker-compose: the environment has priority, the last line counts, relative paths start at docker-compose.yaml.
chosen=${TIPCFLOW_SECRETS:-$(sed -n "s/^TIPCFLOW_SECRETS=//p" "$file" 2>/dev/null | tail -n 1 | tr -d "\"'" || true)}
case $chosen in
"") folder=$(dirname "$file")/.secrets ;;
/*) folder=$chosen ;;
*) folder=$checkout/${chosen#./} ;;
esac

for tool in ssh-keygen openssl base64 od; do
    command -v "$tool" >/dev/null || { echo "error: $tool is needed" >&2; exit 2; }
done
for path in "$file" "$folder"; do
    if [ -e "$path" ] && [ -n "$(find "$path" -maxdepth 0 -perm /077)" ]; then
        echo "error: $path may be read by others; chmod go-rwx $path" >&2
        exit 2
    fi
done
# Containers mount these, and their users are not the owner of the checkout, which may be made with any umask.
hidden=$(cd "$checkout" && find dags configs docker \( ! -perm -004 -o -type d ! -perm -001 \) -print -quit)
if [ -n "$hidden" ]; then
    if ! (cd "$checkout" && chmod -R a+rX dags configs docker); then
        echo "error: $hidden is not readable for the containers' users; run chmod -R a+rX dags configs docker as its owner" >&2
        exit 2
    fi
    echo "chmod -R a+rX dags configs docker: $hidden was not readable for the containers' users"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$folder"
if [ -e "$file" ]; then cp "$file" "$work/env"; else : >"$work/env"; fi
# Terminate an incomplete last line before appending.
[ -z "$(tail -c 1 "$work/env")" ] || echo >>"$work/env"

value() { sed -n "s/^$1=//p" "$work/env" | head -n 1; }
set_value() { grep -q "^$1=." "$work/env" || printf '%s=%s\n' "$1" "$2" >>"$work/env"; }
secret_file() { echo "$folder/$(tr '[:upper:]' '[:lower:]' <<<"$1")"; }
# keep NAME: stores the secret from stdin in its file, and removes it from .env. The file may be read by all users, among
# them the container's; the folder keeps other users of this machine out.
keep() {
    local path
    path=$(secret_file "$1")
    cat >"$work/secret"
    chmod 444 "$work/secret"
    mv -f "$work/secret" "$path"
    sed -i "/^$1=/d" "$work/env"
}
# 64 characters that need no quoting in a URL, a shell or YAML; HMAC keys of SHA-512 need as many bytes.
word() { od -An -tx1 -N32 /dev/urandom | tr -d ' \n'; }
# 32 bytes in the URL-safe alphabet of Fernet.
fernet() { head -c 32 /dev/urandom | base64 | tr -d '\n' | tr '+/' '-_'; }
# secret NAME COMMAND: keeps the present value, or the output of the command.
secret() {
    [ ! -s "$(secret_file "$1")" ] || return 0
    if [ -n "$(value "$1")" ]; then value "$1" | tr -d '\n' | keep "$1"; else "$2" | keep "$1"; fi
}
# key_pair NAME COMMENT: the private key in a file, NAME_PUB, the public key, in .env.
key_pair() {
    local path
    path=$(secret_file "$1")
    if [ ! -s "$path" ]; then
        if [ -n "$(value "$1")" ]; then
            value "$1" | base64 -d | keep "$1"
        elif [ -n "$(value "$1_PUB")" ]; then
            echo "error: $file has $1_PUB, but the private key $path is missing; copy it back, or remove the line for a new pair" >&2
            exit 2
        else
            ssh-keygen -q -t ed25519 -N '' -C "$2" -f "$work/$1"
            keep "$1" <"$work/$1"
        fi
    fi
    # ssh-keygen refuses a private key that others may read.
    cp "$path" "$work/private"
    chmod 600 "$work/private"
    set_value "$1_PUB" "$(ssh-keygen -y -f "$work/private" | cut -d' ' -f1,2)"
}
# signing_key: the pair that signs certificates, each half a PEM file; the public one is for everyone who verifies them.
signing_key() {
    local private public
    private=$(secret_file SIGNING_KEY)
    public=$(secret_file SIGNING_KEY_PUB)
    if [ ! -s "$private" ]; then
        if [ -s "$public" ]; then
            echo "error: $private is missing; for a new pair, keep $public elsewhere: it verifies older certificates" >&2
            exit 2
        fi
        openssl genpkey -algorithm ed25519 | keep SIGNING_KEY
    fi
    if [ ! -s "$public" ]; then openssl pkey -in "$private" -pubout | keep SIGNING_KEY_PUB; fi
}

for name in POSTGRES_PASSWORD AIRFLOW_DB_PASSWORD METRICS_DB_PASSWORD METRICS_READER_PASSWORD \
    RESULTS_DB_PASSWORD REDIS_PASSWORD AIRFLOW_ADMIN_PASSWORD AIRFLOW_CI_PASSWORD AIRFLOW_SECRET_KEY AIRFLOW_JWT_SECRET; do
    secret "$name" word
done
secret AIRFLOW_FERNET_KEY fernet
# For TIPCFLOW_STORE=s3://…, in the format of ~/.aws/config; users replace it by the login of their S3 service.
s3_login() { printf '[default]\naws_access_key_id = tipcflow\naws_secret_access_key = %s\nregion = us-east-1\n' "$(word)"; }
secret OBJECT_STORE s3_login
key_pair NODE_LOGIN_KEY tipcflow
key_pair NODE_1_HOST_KEY node-1
key_pair NODE_2_HOST_KEY node-2
signing_key
# docker-compose takes relative paths from the folder of docker-compose.yaml.
if [ -n "$chosen" ]; then
    set_value TIPCFLOW_SECRETS "$chosen"
elif [ "$(cd "$checkout" && pwd -P)" = "$(cd "$(dirname "$file")" && pwd -P)" ]; then
    set_value TIPCFLOW_SECRETS ./.secrets
else
    set_value TIPCFLOW_SECRETS "$(cd "$folder" && pwd -P)"
fi

# Tag of the images; the next version has another one, so that an upgrade keeps the images for a rollback.
set_value TIPCFLOW_TAG "$(sed -n 's/^version = "\(.*\)"$/\1/p' "$checkout/pyproject.toml")"

mv "$work/env" "$file"
echo "$file and $folder are complete. Airflow's login is admin; its password is in $(secret_file AIRFLOW_ADMIN_PASSWORD)."
