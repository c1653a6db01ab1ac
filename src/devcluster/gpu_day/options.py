"""Command line of `tools/gpu_day.sh`, and the checks of its values."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.tags import sys_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from devcluster.install.wheels import find_wheels, is_page, pinned
from tipcflow.domain import ConfigError
from tipcflow.install.uv import requirements_dir

PADDLE, AUTOLOG, TORCH = "paddlepaddle-gpu", "auto_log", "torch"
_EPILOG = """\
The exit code is that of the worst part. Without --wheels, the parts with Paddle are not_run, because the package
index lacks its GPU wheels. Folders and packages: requirements/README.md.
"""


@dataclass(frozen=True)
class Options:
    """The values of the command line.

    Attributes:
        wheels: folder (absolute), or address of a page with links, with wheels that the package index lacks; ''
            for none.
        offline: whether packages come from that folder only.
        output: folder of the report, the logs and the runs; absolute.
        repeats: trainings per topology of the scaling series.
        dry_run: whether the commands are only printed.
        torch_python: interpreter of an environment with PyTorch for GPUs, such as that of an image, absolute; ''
            for the environment of requirements/node-torch-gpu.txt.
    """

    wheels: str
    offline: bool
    output: Path
    repeats: int
    dry_run: bool
    torch_python: str = ""

    @property
    def creates(self) -> bool:
        """Whether an environment is created."""
        return bool(self.wheels) or not self.torch_python


def read_options(words: Sequence[str]) -> Options:
    """Return the checked options.

    Raises:
        ConfigError: the wheel folder is missing, or lacks a wheel that fits this Python; or no such interpreter.
        SystemExit: unknown options, or --help.
    """
    parser = argparse.ArgumentParser(
        prog="tools/gpu_day.sh",
        description="Run everything that needs GPUs on this machine, and write report.md and report.json.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--wheels", default="", metavar="FOLDER_OR_URL", help="wheels of Paddle for GPUs")
    parser.add_argument("--offline", action="store_true", help="install from the folder only, without a network")
    parser.add_argument("--output", type=Path, help="folder of the report; default: .tipcflow/gpu-day/TIME")
    parser.add_argument("--repeats", type=int, default=5, help="trainings per topology of the scaling series")
    parser.add_argument(
        "--torch-python",
        default="",
        metavar="PATH",
        help="interpreter that has PyTorch, instead of the locked wheels",
    )
    parser.add_argument("--dry-run", action="store_true", help="print all commands, and run none")
    given = parser.parse_args(words)
    root = requirements_dir().parent
    default = root / ".tipcflow" / "gpu-day" / time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    wheels = given.wheels if is_page(given.wheels) or not given.wheels else str(Path(given.wheels).absolute())
    # Not resolved: a virtual environment is identified by its symbolic link.
    torch_python = str(Path(given.torch_python).absolute()) if given.torch_python else ""
    output = (given.output or default).absolute()
    options = Options(wheels, given.offline, output, given.repeats, given.dry_run, torch_python)
    _check(options)
    return options


def _check(options: Options) -> None:
    if not 1 <= options.repeats <= 20:
        raise ConfigError("out of range", key="--repeats", found=str(options.repeats), expected="1 to 20")
    if options.torch_python and not os.access(options.torch_python, os.X_OK):
        raise ConfigError(
            "no such interpreter", key="--torch-python", found=options.torch_python, expected="an executable file"
        )
    if options.offline and (not options.wheels or is_page(options.wheels)):
        raise ConfigError(
            "needs a folder with all wheels",
            key="--offline",
            found=options.wheels or "no --wheels",
            expected="--wheels FOLDER",
        )
    if options.wheels and not is_page(options.wheels):
        require_wheels(options.wheels, PADDLE, AUTOLOG)


def version_of(package: str) -> str:
    """Return the version of a package of GPU nodes that the repository names."""
    file = "node-torch-gpu.in" if package == TORCH else "node-gpu.in"
    return pinned(requirements_dir() / file, package)


def require_wheels(folder: str, *packages: str) -> None:
    """Check that a folder has wheels of packages that fit this Python.

    Raises:
        ConfigError: no folder, or a package has no such wheel.
    """
    if not Path(folder).is_dir():
        raise ConfigError("no such folder", key="--wheels", found=folder, expected="a folder with wheels")
    tags = frozenset(sys_tags())
    for package in packages:
        version = version_of(package)
        wheels = find_wheels(folder, package, version)
        if not any(_tags_of(wheel) & tags for wheel in wheels):
            others = f"; it has {', '.join(wheel.name for wheel in wheels)}" if wheels else ""
            raise ConfigError(
                f"the folder has no wheel of {package} {version} for this Python{others}",
                key="--wheels",
                found=folder,
                expected=f"a wheel for Python {sys.version_info[0]}.{sys.version_info[1]} on this machine",
                hint="requirements/README.md describes where the wheels are",
            )


def _tags_of(wheel: Path) -> frozenset[object]:
    try:
        return frozenset(parse_wheel_filename(wheel.name)[3])
    except InvalidWheelFilename:
        return frozenset()
