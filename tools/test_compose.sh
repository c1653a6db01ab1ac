#!/usr/bin/env bash
# Runs tests/compose: docker-compose.yaml on a container engine that the tests start, with base images of this machine's
# packages, so that no registry is needed. Needs root and Debian's docker.io, docker-compose, iptables, nginx-light,
# postgresql, redis-server, tini and openssh-server. Images are kept in .tipcflow/compose.
# COMPOSE=PROGRAM uses another docker-compose than that in PATH, of version 1.29 or later.
# --fast: one chain, its certificate and logs, roles, secrets and networks, `down`; other arguments are those of pytest.
# Called by `make test-compose`.
set -euo pipefail
cd "$(dirname "$0")/.."
missing=$(.venv/bin/python -c 'import sys; sys.path.insert(0, "."); from tests.support.compose.engine import missing; print(missing())')
if [ -n "$missing" ]; then
    printf '\n==== SKIPPED: docker-compose.yaml is not tested: %s ====\n\n' "$missing"
    [ "${CI:-}" != true ] || exit 1
    exit 0
fi
if ! .venv/bin/python -c 'import sys; sys.path.insert(0, "."); from tests.support.compose.versions import *; sys.exit(not command_of_version_2())'; then
    printf '\n==== SKIPPED: docker-compose.yaml is not tested with Compose 2: set COMPOSE or install docker compose ====\n\n'
fi
chosen=()
if [ "${1:-}" = --fast ]; then
    chosen=(-m fast)
    shift
fi
exec .venv/bin/pytest tests/compose -n 0 -rs "${chosen[@]}" "$@"
