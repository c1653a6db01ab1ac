#!/usr/bin/env bash
# Makes .tipcflow/envs/node-autolog for a test: the packages of node-cpu, and AutoLog by hash from the folder TIPC_WHEELS.
# Without TIPC_WHEELS nothing is made. The tests have no network, so this runs before them.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -n "${TIPC_WHEELS:-}" ] || exit 0
envs=${TIPCFLOW_HOME:-.tipcflow}/envs
rm -rf "$envs/node-autolog"
"$envs/node-cpu/bin/python" -m venv --without-pip "$envs/node-autolog"
packages=$(echo "$envs"/node-autolog/lib/python*/site-packages)
(cd "$envs"/node-cpu/lib/python*/site-packages && pwd) >"$packages/node-cpu.pth"
TIPCFLOW_WHEEL_URL=$TIPC_WHEELS .venv/bin/python - "$envs/node-autolog/bin/python" <<'END'
import sys
from pathlib import Path

from devcluster.install.wheels import add_autolog
from tipcflow.config.settings import settings
from tipcflow.install.uv import require_uv, requirements_dir

uv = require_uv(settings().home, print)
if not add_autolog(uv, Path(sys.argv[1]), requirements_dir() / "node-autolog.txt", print):
    sys.exit("TIPC_WHEELS names no folder with the wheel that requirements/node-autolog.txt pins")
END
