#!/usr/bin/env bash
# Runs tests/compose: docker-compose.yaml on a container engine that the tests start, with base images of this machine's
# packages, so that no registry is needed. Needs root and Debian's docker.io, docker-compose, iptables, nginx-light,
# postgresql, redis-server, tini and openssh-server. Images are kept in .tipcflow/compose.
# Called by `make test-compose`; arguments are those of pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
missing=$(.venv/bin/python -c 'import sys; sys.path.insert(0, "."); from tests.support.compose.engine import missing; print(missing())')
if [ -n "$missing" ]; then
    printf '\n==== SKIPPED: docker-compose.yaml is not tested: %s ====\n\n' "$missing"
    [ "${CI:-}" != true ] || exit 1
    exit 0
fi
exec .venv/bin/pytest tests/compose -n 0 -rs "$@"
