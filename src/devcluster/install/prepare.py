"""Preparation of this machine for the demo and the tests: installs missing requirements.

Usage: `python -m devcluster.install.prepare [--tests] [--servers]`

`--servers`: the environment of nodes with parameter servers instead of that of CPU nodes.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from devcluster.install import packages
from devcluster.install.environment import node_environment
from devcluster.signals import interrupt_guard
from tipcflow.domain import TipcflowError, exit_code


def prepare(home: Path, report: Callable[[str], None], *, tests: bool = False, kind: str = "node-cpu") -> Path:
    """Install programs for local nodes and the nodes' environment; with `tests` also requirements of tests.

    Returns: the interpreter of the nodes' environment.

    Raises:
        ConfigError: TIPCFLOW_WHEEL_URL lacks a wheel that the environment needs.
        InfraError: an installation failed; the message names the cause and the fix.
    """
    needs = packages.for_local_nodes()
    packages.ensure((*needs, *packages.FOR_TESTS) if tests else needs, report)
    return node_environment(home, report, kind=kind)


def main() -> None:
    """Entry point for `make`."""
    from tipcflow.config.settings import settings

    try:
        with interrupt_guard.installed():
            kind = "node-ps" if "--servers" in sys.argv[1:] else "node-cpu"
            prepare(
                settings().home,
                lambda line: print(line, file=sys.stderr),  # noqa: T201
                tests="--tests" in sys.argv[1:],
                kind=kind,
            )
    except TipcflowError as error:
        print(f"{error.status.value}: {error}", file=sys.stderr)  # noqa: T201
        raise SystemExit(exit_code(error.status)) from error
    except KeyboardInterrupt:
        raise SystemExit(3) from None


if __name__ == "__main__":
    main()
