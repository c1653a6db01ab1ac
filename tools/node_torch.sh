#!/usr/bin/env bash
# Creates the environment of nodes that train with PyTorch on CPUs (.tipcflow/envs/node-torch), if it does not exist.
# Requires TIPCFLOW_WHEEL_URL (or PIP_FIND_LINKS): a folder, or a page with links, with PyTorch's CPU wheel, which the
# package index lacks. Without it nothing is created, and tests with PyTorch are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
links=${TIPCFLOW_WHEEL_URL:-${PIP_FIND_LINKS:-}}
if [ -z "$links" ]; then
    echo "node-torch: TIPCFLOW_WHEEL_URL is not set (requirements/README.md): tests with PyTorch are skipped" >&2
    exit 0
fi
.venv/bin/python - <<'PYTHON'
import sys

from tipcflow.config.settings import settings
from devcluster.install.environment import node_environment
from tipcflow.domain import TipcflowError

try:
    node_environment(settings().home, lambda line: print(line, file=sys.stderr), kind="node-torch")
except TipcflowError as error:
    sys.exit(f"{error.status.value}: {error}")
PYTHON
