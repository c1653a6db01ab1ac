"""Commands that prepare a new host: what it is, and the nodes' environment on it."""

import shlex

# Nodes' environments have wheels for these.
PYTHONS = ">=3.11,<3.14"
EXIT = "tipcflow-exit "
"""Start of the last line of `make_environment`, before its exit code."""


def _script(text: str, *arguments: str) -> str:
    return " ".join(shlex.quote(word) for word in ("/bin/sh", "-c", text.strip(), "tipcflow", *arguments))


def survey() -> str:
    """Print facts of a host as lines KEY=VALUE: hostname, home, root, arch, cpus, gpus, python."""
    return _script(
        """
echo "hostname=$(hostname -s 2>/dev/null || uname -n)"
echo "home=$HOME"
echo "root=$([ "$(id -u)" = 0 ] && echo 1 || echo 0)"
echo "system=$(uname -s)"
echo "arch=$(uname -m)"
echo "cpus=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)"
echo "gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ' || true)"
for python in python3.13 python3.12 python3.11 python3; do
  found=$(command -v "$python" 2>/dev/null) || continue
  "$found" -I -S -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null || continue
  echo "python=$found"
  break
done
"""
    )


def environment_stamp(folder: str) -> str:
    """Print the hash of the requirements from which an environment was made; nothing if it is incomplete."""
    return _script('cat "$1/.tipcflow-complete" 2>/dev/null || true', folder)


def make_environment(uv: str, requirements: str, folder: str, python: str, stamp: str) -> str:
    """Create an environment with exactly the pinned packages; print progress, then `EXIT` and the exit code.

    Args:
        uv: path of uv on the node.
        requirements: path of the pinned requirements on the node.
        folder: of the environment; replaced.
        python: interpreter that the environment is made from.
        stamp: hash of the requirements, written last.
    """
    return _script(
        f"""
exec 2>&1
trap 'code=$?; echo "{EXIT}$code"; exit 0' EXIT
set -eu
umask 022
mkdir -p "$3"
rm -f "$3/.tipcflow-complete"
# An index inside a company has a certificate that only the host's own store knows.
UV_SYSTEM_CERTS="${{UV_SYSTEM_CERTS:-1}}"
export UV_SYSTEM_CERTS
"$1" venv --quiet --clear --no-python-downloads --python "$4" "$3"
"$1" pip sync --require-hashes --python "$3/bin/python" "$2"
printf %s "$5" > "$3/.tipcflow-complete"
""",
        uv,
        requirements,
        folder,
        python,
        stamp,
    )
