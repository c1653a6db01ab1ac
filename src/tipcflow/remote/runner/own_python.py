"""A run's own Python environment on top of the node's: what a run installs ends with the run."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from importlib.util import find_spec
from pathlib import Path
from typing import Dict, List, NamedTuple

from .cache import digest, locked, log, used
from .unmet import DOWNLOAD, ENVIRONMENT, Unusable, failure_of

SHIMS = ("python", "python3", "python3.7", "pip", "pip3", "pip3.7")

PIP_MESSAGE = re.compile(rb"(ERROR|WARNING): ")
# A requirement without extras and URL, which pip does not accept as a constraint.
CONSTRAINT = re.compile(r"[A-Za-z0-9._-]+ *([<>=!~;]|$)")
# Pip counts its retries down; the last warning before it fails has total=0.
LAST_TRY = re.compile(r"Retrying \(Retry\(total=0,.*after connection broken by '(.*)': /")


def own_environment(run: str, cache: str, packages: List[str], build: Dict[str, str]) -> None:
    """Create the run's environment and make the run's `python` and `pip` use it.

    Called with the interpreter of the node's environment. Packages are installed once into the node's cache; the
    key has their requirements, the interpreter and the packages of the node's environment.

    Args:
        build: framework build: name, version, wheel, sha256; empty for none.

    Raises:
        Unusable: the packages cannot be installed.
    """
    below = site_folders()
    if build:
        below = [cached_build(cache, build, below), *below]
    if packages:
        below = [cached_packages(cache, packages, below), *below]
    folder = os.path.join(run, "env")
    shutil.rmtree(folder, ignore_errors=True)
    make(folder, below)
    keep = constraints(folder, packages)
    for name in SHIMS:
        module = " -m pip" if name.startswith("pip") else ""
        shim = os.path.join(run, "bin", name)
        os.makedirs(os.path.dirname(shim), exist_ok=True)
        with open(shim + ".new", "w") as handle:
            handle.write(f"#!/bin/sh\n{keep}exec '{folder}/bin/python'{module} \"$@\"\n")
        os.chmod(shim + ".new", 0o755)
        os.rename(shim + ".new", shim)
    log(f"environment of the run: {folder}, on top of {', '.join(below)}")


def constraints(folder: str, packages: List[str]) -> str:
    """Return a shell line that lets pip keep the packages: what the suite's scripts install must not replace what
    its file requires."""
    constraints = [package for package in packages if CONSTRAINT.match(package)]
    if not constraints:
        return ""
    file = os.path.join(folder, "constraints.txt")
    with open(file, "w") as handle:
        handle.write("".join(f"{package}\n" for package in constraints))
    # A URL, because pip splits the variable at spaces.
    return f"export PIP_CONSTRAINT='{Path(file).as_uri()}'\"${{PIP_CONSTRAINT:+ $PIP_CONSTRAINT}}\"\n"


def make(folder: str, below: List[str], *, with_pip: bool = False) -> None:
    """Create an environment without packages that also uses the packages in other folders."""
    venv.EnvBuilder(symlinks=True, with_pip=with_pip).create(folder)
    text = "".join(f"import site; site.addsitedir({place!r})\n" for place in below)
    with open(os.path.join(own_site(folder), "_tipcflow.pth"), "w") as handle:
        handle.write(text)


def own_site(folder: str) -> str:
    """Return the folder of an environment's packages."""
    return os.path.join(folder, "lib", f"python{sys.version_info[0]}.{sys.version_info[1]}", "site-packages")


def site_folders() -> List[str]:
    """Return the folders of packages of the running interpreter."""
    return [path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")]


def must_install(what: str, folder: str, words: List[str]) -> None:
    """Install into an environment.

    Raises:
        Unusable: pip fails; the message states the reason.
    """
    failure = pip_install(folder, words)
    if failure is not None:
        raise Unusable(f"pip cannot install {what}: {failure.cause}", failure.kind)


class PipFailure(NamedTuple):
    """Why pip could not install something, and the kind of the failure (`unmet`)."""

    cause: str
    kind: str


def pip_install(folder: str, words: List[str]) -> PipFailure | None:
    """Install into an environment; return why pip could not, None if pip could. Pip's output is in the log."""
    command = [os.path.join(folder, "bin", "python"), "-m", "pip", "install"]
    command += ["--disable-pip-version-check", "--no-input", *words]
    environment = dict(os.environ, PYTHONPATH="", PYTHONUNBUFFERED="1")
    seen: List[str] = []
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as pip:
        assert pip.stdout is not None
        for line in pip.stdout:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            if PIP_MESSAGE.match(line):
                seen.append(line.decode("utf-8", "replace").strip())
    if not pip.returncode:
        return None
    return why_pip_failed(seen) or PipFailure(f"exit code {pip.returncode}", ENVIRONMENT)


def why_pip_failed(lines: List[str]) -> PipFailure | None:
    """Return the cause in pip's warnings and errors, None if they name none.

    A package index that cannot be reached is only a warning of pip (23.2 tried); its error then states that the
    index has no such package.
    """
    for line in reversed(lines):
        unreachable = LAST_TRY.search(line)
        if unreachable:
            causes = re.findall(r"\[Errno -?\d+\] ([^'\")]+)|\((connect|read) timeout=", unreachable.group(1))
            cause = next((errno or f"{kind} timeout" for errno, kind in causes), unreachable.group(1)[:200])
            return PipFailure(f"the package index cannot be reached: {cause}", DOWNLOAD)
    errors = [line[len("ERROR: ") :] for line in lines if line.startswith("ERROR: ")]
    return PipFailure(errors[-1][:300], failure_of("\n".join(errors), ENVIRONMENT)) if errors else None


def cached_build(cache: str, build: Dict[str, str], below: List[str]) -> str:
    """Return the folder of an installed framework build in the cache; install it if it is missing.

    Raises:
        Unusable: the wheel is damaged, pip fails, or what pip installed is not the build.
    """
    name = f"{build['name']} {build['version']}"
    there = sorted(one for place in below for one in os.listdir(place) if one.endswith("-info"))
    key = json.dumps([build, sys.version, sys.executable, there], sort_keys=True)
    folder = os.path.join(cache, "builds", hashlib.sha256(key.encode()).hexdigest()[:32])
    done = os.path.join(folder, "complete")
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with locked(folder + ".lock"):
        if os.path.exists(done):
            for file in (done, os.path.join(cache, "wheels", build["sha256"], build["wheel"])):
                if os.path.isfile(file):
                    used(file)
            log(f"{name}: in the cache")
            return own_site(folder)
        shutil.rmtree(folder, ignore_errors=True)
        make(folder, below, with_pip=find_spec("pip") is None)
        log(f"installing {name} into {folder}")
        words = [f"{build['name']}=={build['version']}"]
        if build["wheel"]:
            words = [wheel_of(cache, build)]
            # Of the same version as the node's framework it would count as installed.
            must_install(f"the wheel {build['wheel']}", folder, ["--no-deps", "--force-reinstall", *words])
        must_install(name, folder, words)
        if not is_installed(own_site(folder), build):
            raise Unusable(f"pip installed another build than {name}", ENVIRONMENT)
        with open(done, "w") as handle:
            handle.write(name + "\n")
    return own_site(folder)


def wheel_of(cache: str, build: Dict[str, str]) -> str:
    """Return the path of a wheel in the cache.

    Raises:
        Unusable: it is missing or damaged.
    """
    path = os.path.join(cache, "wheels", build["sha256"], build["wheel"])
    if not os.path.isfile(path) or digest(path) != build["sha256"]:
        raise Unusable(f"{path} is missing or damaged", ENVIRONMENT)
    return path


def is_installed(site: str, build: Dict[str, str]) -> bool:
    """Return whether a folder has the package information of this build; of a release, pip has checked the
    version."""
    names = [one[: -len(".dist-info")] for one in os.listdir(site) if one.endswith(".dist-info")]
    found = [tuple(re.sub(r"[-_.]+", "_", part).lower() for part in one.split("-")[:2]) for one in names]
    wanted = tuple(re.sub(r"[-_.]+", "_", build[key]).lower() for key in ("name", "version"))
    return wanted in found if build["wheel"] else wanted[0] in [one[0] for one in found]


def cached_packages(cache: str, packages: List[str], below: List[str]) -> str:
    """Return the folder of the installed packages in the cache; install them if they are missing.

    Raises:
        Unusable: pip fails; its own output is in the log.
    """
    there = sorted(name for place in below for name in os.listdir(place) if name.endswith("-info"))
    key = json.dumps([sorted(packages), sys.version, sys.executable, there])
    folder = os.path.join(cache, "packages", hashlib.sha256(key.encode()).hexdigest()[:32])
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with locked(folder + ".lock"):
        if os.path.exists(os.path.join(folder, "complete")):
            used(os.path.join(folder, "complete"))
            log(f"packages {', '.join(packages)}: in the cache")
            return own_site(folder)
        shutil.rmtree(folder, ignore_errors=True)
        make(folder, below, with_pip=find_spec("pip") is None)
        log(f"installing {', '.join(packages)} into {folder}")
        must_install(f"the packages of the suite file ({', '.join(packages)})", folder, packages)
        with open(os.path.join(folder, "complete"), "w") as handle:
            handle.write("\n".join(packages) + "\n")
    return own_site(folder)
