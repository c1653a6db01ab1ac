#!/usr/bin/env bash
# Makes the certificates for workers on other machines: an authority of your own, one certificate for the main machine, one
# per worker. Usage:
#   docker/certificates.sh server NAME...    NAME: host names and IP addresses under which workers reach the main machine;
#                                            workers use the first one, which is not an IPv6 address
#   docker/certificates.sh worker NAME       NAME: the worker's host name; writes .certificates/NAME, for that machine
# Certificates that are valid for another 30 days are kept. The folder is TIPCFLOW_CERTIFICATES, by default .certificates;
# secrets are read from TIPCFLOW_SECRETS, by default .secrets. Both are variables of the environment or lines of .env.
set -euo pipefail
umask 077
checkout=$(cd "$(dirname "$0")/.." && pwd)
# line NAME: the line of .env with a value. The last one counts, as for docker-compose.
line() { sed -n "/^$1=./p" "$checkout/.env" 2>/dev/null | tail -n 1 || true; }
# chosen NAME DEFAULT: a folder. As for docker-compose, the environment has priority, and relative paths start at the checkout.
chosen() {
    local path
    path=${!1:-$(line "$1" | cut -d= -f2- | tr -d "\"'")}
    path=${path:-$2}
    case $path in /*) echo "$path" ;; *) echo "$checkout/${path#./}" ;; esac
}
folder=$(chosen TIPCFLOW_CERTIFICATES .certificates)
secrets=$(chosen TIPCFLOW_SECRETS .secrets)
authority_days=3650 days=397 renew_s=$((30 * 24 * 3600))
# Other secrets of a worker: no Fernet key, no JWT secret.
shared=(airflow_secret_key metrics_db_password object_store redis_password results_db_password signing_key signing_key_pub)
# Settings in .env of the main machine that a worker needs with the same value.
same=(AIRFLOW_URL POSTGRES_PORT REDIS_PORT TIPCFLOW_LOG_LIMIT_MB TIPCFLOW_QUEUE_RISE_S TIPCFLOW_STORE TIPCFLOW_TAG
    TIPCFLOW_WEEKLY_AT_ONCE TIPCFLOW_WEEKLY_CRON TIPCFLOW_WHEEL_HOSTS TLS_PORT)

fail() { echo "error: $*" >&2; exit 2; }
usage() { sed -n '2,8s/^# //p' "$0" >&2; exit 2; }
command -v openssl >/dev/null || fail "openssl is needed"
[ $# -ge 2 ] || usage
kind=$1
shift
for name; do
    [[ $name =~ ^[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?$ ]] || fail "not a host name or address: $name"
done
# no_ipv6 NAME: compose.worker.yaml makes URLs of it, and docker's networks have no IPv6 unless it is switched on.
no_ipv6() { [[ $1 != *:* ]] || fail "$2: found the IPv6 address $1, expected a host name or an IPv4 address"; }
no_ipv6 "$1" "first NAME of $kind"
mkdir -p "$folder"
[ -z "$(find "$folder" -maxdepth 0 -perm /077)" ] || fail "$folder may be read by others; chmod go-rwx $folder"
work=$(mktemp -d "$folder/.new.XXXXXX")
trap 'rm -rf "$work"' EXIT

lasts() { openssl x509 -in "$1" -noout -checkend "$renew_s" >/dev/null 2>&1; }
# sign NAME EXTENSION...: a new key and its certificate in $work/crt and $work/key.
sign() {
    local name=$1
    shift
    [ -e "$folder/ca.key" ] ||
        fail "$folder/ca.key is missing, the key of $folder/ca.crt: copy it back to sign the certificate of $name, and remove it again afterwards"
    printf '%s\n' "basicConstraints=critical,CA:FALSE" "keyUsage=critical,digitalSignature" "$@" >"$work/extensions"
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$work/key" -out "$work/request" \
        -subj "/CN=${name:0:64}" 2>/dev/null
    openssl x509 -req -in "$work/request" -CA "$folder/ca.crt" -CAkey "$folder/ca.key" \
        -set_serial "0x$(openssl rand -hex 16)" -days "$days" -sha256 -extfile "$work/extensions" -out "$work/crt" 2>/dev/null
}
# put FILE PLACE: mode 0444, because users of containers read it; the folder keeps other users out.
put() {
    chmod 444 "$1"
    mv -f "$1" "$2"
}

if [ ! -e "$folder/ca.crt" ]; then
    [ "$kind" = server ] || fail "$folder has no authority; run docker/certificates.sh server NAME on the main machine first"
    [ ! -e "$folder/server.crt" ] ||
        fail "$folder/ca.crt is missing, and workers trust only this authority: copy it back, or move $folder away and make all certificates again"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$work/ca.key" -out "$work/ca.crt" \
        -days "$authority_days" -sha256 -subj "/CN=tipcflow $(openssl rand -hex 4)" \
        -addext "keyUsage=critical,keyCertSign,cRLSign" 2>/dev/null
    chmod 400 "$work/ca.key"
    # The certificate last: its file shows that the authority is complete, also while its key is kept elsewhere.
    mv -f "$work/ca.key" "$folder/ca.key"
    put "$work/ca.crt" "$folder/ca.crt"
fi
lasts "$folder/ca.crt" || fail "the authority ends soon; move $folder away and make all certificates again"

case $kind in
server)
    names=
    for name; do
        if [[ $name =~ ^[0-9.]+$ || $name == *:* ]]; then names+=",IP:$name"; else names+=",DNS:$name"; fi
    done
    if lasts "$folder/server.crt" && [ "$(cat "$folder/server.names" 2>/dev/null)" = "$*" ]; then
        echo "kept $folder/server.crt"
        exit
    fi
    sign "$1" "extendedKeyUsage=serverAuth" "subjectAltName=${names#,}"
    put "$work/key" "$folder/server.key"
    put "$work/crt" "$folder/server.crt"
    echo "$*" >"$folder/server.names"
    echo "wrote $folder/server.crt for $*; restart postgres, redis and proxy"
    ;;
worker)
    [ $# -eq 1 ] || usage
    main=$(cut -d' ' -f1 "$folder/server.names")
    # Older versions of this script accepted it.
    no_ipv6 "$main" "$folder/server.names"
    bundle=$folder/$1
    mkdir -p "$bundle/.secrets"
    if lasts "$bundle/.secrets/client_crt"; then
        echo "kept the certificate of $1"
    else
        sign "$1" "extendedKeyUsage=clientAuth"
        put "$work/key" "$bundle/.secrets/client_key"
        put "$work/crt" "$bundle/.secrets/client_crt"
        echo "wrote the certificate of $1"
    fi
    for name in "${shared[@]}"; do
        [ -s "$secrets/$name" ] || fail "$secrets/$name is missing; run docker/env.sh first"
        cp "$secrets/$name" "$work/secret"
        put "$work/secret" "$bundle/.secrets/$name"
    done
    cp "$folder/ca.crt" "$work/ca"
    put "$work/ca" "$bundle/.secrets/ca_crt"
    if [ ! -e "$bundle/.env" ]; then
        # Without COMPOSE_FILE, docker-compose would take the file of the main machine, in the same checkout.
        printf 'MAIN_HOST=%s\nWORKER_HOST=%s\nCOMPOSE_FILE=compose.worker.yaml\nTIPCFLOW_SECRETS=./.secrets\n' \
            "$main" "$1" >"$bundle/.env"
    fi
    # set_line LINE: replaces the lines of this variable in the worker's .env.
    set_line() {
        { sed "/^${1%%=*}=/d" "$bundle/.env"; echo "$1"; } >"$work/env"
        mv -f "$work/env" "$bundle/.env"
    }
    # A name that the certificate of the main machine no longer has.
    [[ " $(cat "$folder/server.names") " == *" $(sed -n 's/^MAIN_HOST=//p' "$bundle/.env" | tail -n 1) "* ]] ||
        set_line "MAIN_HOST=$main"
    for name in "${same[@]}"; do
        given=$(line "$name")
        [ -z "$given" ] || set_line "$given"
    done
    echo "copy $bundle/.env and $bundle/.secrets to the checkout on $1"
    ;;
*) usage ;;
esac
