"""Wheels that the package index lacks: where they are, and whether a folder has them."""

import os
import re
from collections.abc import Callable
from pathlib import Path

from tipcflow.domain import ConfigError
from tipcflow.install.installer import InstallError, InstallFailure, run_installer

# Environment -> its package that the index lacks.
OWN_WHEELS = {"node-torch": "torch", "node-autolog": "auto-log"}
VARIABLE = "TIPCFLOW_WHEEL_URL"
# The environment works without AutoLog.
_NOT_THERE = frozenset({InstallFailure.NOT_IN_INDEX, InstallFailure.OTHER_PYTHON})


def wheel_sources() -> list[str]:
    """Return the folders and pages with such wheels: TIPCFLOW_WHEEL_URL, then those of pip's own variable."""
    return [name for name in (os.environ.get(VARIABLE, ""), *os.environ.get("PIP_FIND_LINKS", "").split()) if name]


def wheel_env() -> dict[str, str]:
    """Return the environment of an installer that also looks there."""
    sources = [name for name in wheel_sources() if is_page(name) or Path(name).is_dir()]
    return {**os.environ, "UV_FIND_LINKS": ",".join(sources)} if sources else dict(os.environ)


def is_page(source: str) -> bool:
    """Return whether a wheel source is the address of a page, not a folder."""
    return "://" in source


def _may_have(package: str, version: str) -> bool:
    """Return whether a folder has the wheel, or a page may have it."""
    return any(is_page(source) or find_wheel(source, package, version) for source in wheel_sources())


def pinned(requirements: Path, package: str) -> str:
    """Return the version of a package in a file of pinned requirements; '' without one."""
    match = re.search(rf"^{re.escape(package)}==(\S+)", requirements.read_text(encoding="utf-8"), re.MULTILINE)
    return match[1] if match else ""


def require_wheel(kind: str, requirements: Path) -> None:
    """Check that the wheel source may have the wheel of an environment; a page is only checked by the installer.

    Raises:
        ConfigError: no source is set, the folder does not exist, or has no wheel of the pinned version.
    """
    package = OWN_WHEELS.get(kind, "")
    version = pinned(requirements, package) if package else ""
    if not version:
        return
    wanted = f"a folder, or a page with links, with the wheel of {package} {version}"
    if not wheel_sources():
        raise ConfigError(
            f"{kind} needs the wheel of {package} {version}, which the package index lacks",
            key=VARIABLE,
            found="nothing",
            expected=wanted,
            hint="requirements/README.md describes where the wheel is",
        )
    if not _may_have(package, version):
        states = [
            f"{name}: {'a folder without it' if Path(name).is_dir() else 'no folder'}" for name in wheel_sources()
        ]
        raise ConfigError(
            f"{kind} needs the wheel of {package} {version}",
            key=VARIABLE,
            found=", ".join(states),
            expected=wanted,
        )


def find_wheel(folder: str, package: str, version: str) -> Path | None:
    """Return a folder's wheel of that version, None if it has none."""
    return next(iter(find_wheels(folder, package, version)), None)


def find_wheels(folder: str, package: str, version: str) -> list[Path]:
    """Return a folder's wheels of that version, for all Pythons and machines."""
    name = f"{re.sub(r'[-_.]+', '_', package)}-{version}-"
    return [path for path in sorted(Path(folder).glob("*.whl")) if path.name.startswith(name)]


def may_have_autolog(requirements: Path) -> bool:
    """Return whether a wheel source has the pinned AutoLog, or is a page, which may have it."""
    return _may_have(OWN_WHEELS["node-autolog"], pinned(requirements, OWN_WHEELS["node-autolog"]))


def add_autolog(uv: Path, python: Path, requirements: Path, report: Callable[[str], None]) -> bool:
    """Install AutoLog into a node's environment if the wheel source has it.

    Returns: whether it is installed.

    Raises:
        InfraError: the installation failed, for example because the wheel has another hash.
    """
    version = pinned(requirements, OWN_WHEELS["node-autolog"])
    if not may_have_autolog(requirements):
        return False
    argv = [str(uv), "pip", "install", "--quiet", "--require-hashes", "--python", str(python)]
    try:
        run_installer(
            [*argv, "-r", str(requirements)], what="AutoLog", folder=python, report=lambda _: None, env=wheel_env()
        )
    except InstallError as error:
        if any(map(is_page, wheel_sources())):
            if error.failure in _NOT_THERE:
                report(f"{VARIABLE} has no AutoLog {version}: the sample suite uses its own reporter")
                return False
            if error.failure is InstallFailure.UNREACHABLE:
                report(f"AutoLog is not installed, the sample suite uses its own reporter: {error.message}")
                return False
        raise
    report(f"AutoLog {version} installed: the sample suite uses it")
    return True
