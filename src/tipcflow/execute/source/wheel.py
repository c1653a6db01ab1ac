"""The wheel of a framework build: fetched and checked on the controller, kept by its hash for the run's tasks."""

import hashlib
import os
import re
import shutil
import time
import uuid
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tipcflow.domain import ConfigError, InfraError
from tipcflow.domain.build import FrameworkBuild
from tipcflow.domain.masking import mask
from tipcflow.domain.numbers.units import limit

OBJECTS = "wheels"
KEY = "--framework-wheel"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9._+!-]+\.whl")
_URLS = ("http://", "https://")
_CONNECT_S = 30.0
# A wheel with CUDA has up to 1 GB.
_FETCH_S = 1200.0
_MOST_BYTES = 4 << 30
_EXPECTED = "name-version-python-abi-platform.whl"


def check_source(source: str, sha256: str, *, only_names: bool) -> None:
    """Check the words of a request; nothing is read.

    Args:
        only_names: whether a path is refused: the request comes from another machine or another user.

    Raises:
        ConfigError: a hash without a wheel, a URL without a hash or with a login, an invalid hash, or a path.
    """
    if not source:
        if sha256:
            raise ConfigError("has no effect without a wheel", key="--sha256", found=sha256, expected="a wheel")
        return
    is_url = is_address(source)
    if not sha256 and (is_url or only_names):
        raise ConfigError("the wheel needs a hash", key="--sha256", found="none", expected="64 hexadecimal digits")
    if is_url and (urlsplit(source).username or urlsplit(source).password):
        raise ConfigError(
            "the address contains a login, which Airflow would show to every user",
            key=KEY,
            found=mask(source),
            expected="an address without a login",
        )
    if sha256 and not _SHA256.fullmatch(sha256):
        raise ConfigError("is not a hash", key="--sha256", found=sha256, expected="64 hexadecimal digits")
    if only_names and not is_url and not _NAME.fullmatch(source):
        raise ConfigError(
            "is not on the machine of Airflow",
            key=KEY,
            found=source,
            expected="an https address, or the name of a file in its TIPCFLOW_HOME/wheels",
        )


def fetch_wheel(
    source: str, sha256: str, *, home: Path, only_names: bool = False, hosts: str = ""
) -> FrameworkBuild:
    """Return the build of a wheel, which is then below `home`.

    Args:
        source: an http or https address, or a path; with `only_names` the name of a file in `<home>/wheels`.
        hosts: `Settings.wheel_hosts`.

    Raises:
        ConfigError: no such file, not a wheel, it has another hash, or its host is not allowed.
        InfraError: the server cannot be reached, or refuses; or the object store does.
    """
    # `tipcflow trigger` checks addresses without the extra `run`.
    from tipcflow.execute.objects.object_store import object_store
    from tipcflow.execute.source.cache import FRESH_S

    build = _fetched(source, sha256, home=home, only_names=only_names, hosts=hosts)
    if (objects := object_store()) is not None:
        objects.keep(_object(build), _place(home, build), fresh_s=FRESH_S)
    return build


def _fetched(source: str, sha256: str, *, home: Path, only_names: bool, hosts: str) -> FrameworkBuild:
    check_source(source, sha256, only_names=only_names)
    folder = home / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    build = _build(_file_name(source), source, sha256)
    if sha256 and (only_names or is_address(source)) and (kept := _place(home, build)).is_file():
        os.utime(kept)
        return build
    if not is_address(source):
        path = folder / source if only_names else Path(source)
        if not path.is_file():
            raise ConfigError("no such file", key=KEY, found=str(path), expected="a wheel")
        return _checked(path, build, source, sha256, folder)
    aside = folder / f".{uuid.uuid4().hex}"
    try:
        _download(source, aside, hosts)
        return _checked(aside, build, source, sha256, folder)
    finally:
        aside.unlink(missing_ok=True)


def is_address(source: str) -> bool:
    """Whether a source is an http or https address, not a path or a name."""
    return source.startswith(_URLS)


def name_build(source: str, sha256: str, *, home: Path, hosts: str) -> FrameworkBuild:
    """Return the build that a request of another machine names, without fetching or copying its wheel.

    Args:
        source: an address, or the name of a file in `<home>/wheels`.
        hosts: `Settings.wheel_hosts`.

    Raises:
        ConfigError: not a wheel, no such file, the file has another hash, or the host is not allowed.
    """
    check_source(source, sha256, only_names=True)
    build = _build(_file_name(source), source, sha256)
    if is_address(source):
        _check_host(urlsplit(source).hostname or "", hosts)
        return build
    path = home / "wheels" / source
    if _place(home, build).is_file():
        return build
    if not path.is_file():
        raise ConfigError("no such file", key=KEY, found=str(path), expected="a wheel")
    _check_hash(path, source, sha256)
    return build


def check_address(url: str, sha256: str) -> None:
    """Fetch a wheel and compare its hash, without keeping it.

    Raises:
        ConfigError: the server does not have it, or it has another hash.
        InfraError: the server cannot be reached from this machine.
    """
    digest = hashlib.sha256()
    for block in _blocks(url, ""):
        digest.update(block)
    if digest.hexdigest() != sha256:
        raise _other_hash(url, digest.hexdigest(), sha256)


def kept_wheel(home: Path, build: FrameworkBuild) -> Path:
    """Return the file of a wheel that `fetch_wheel` kept.

    Raises:
        InfraError: not found: neither TIPCFLOW_HOME nor TIPCFLOW_STORE is shared by all workers, or it was removed
            too early; or the object store cannot be reached.
    """
    from tipcflow.execute.objects.copies import copied
    from tipcflow.execute.objects.object_store import MissingObjectError, object_store

    path = _place(home, build)
    if path.is_file():
        return path
    try:
        if (objects := object_store()) is not None:
            return copied(
                objects, _object(build), home=home, sha256=build.sha256, count=_MOST_BYTES, content_hash=_hash
            )
    except MissingObjectError:
        pass
    raise InfraError(
        f"the wheel {build.wheel} is not on this machine",
        hint="all workers must share one TIPCFLOW_HOME, or use one TIPCFLOW_STORE; if it was removed, clear the "
        "run from its first task",
    )


def _object(build: FrameworkBuild) -> str:
    return f"{OBJECTS}/{build.sha256}/{build.wheel}"


def _place(home: Path, build: FrameworkBuild) -> Path:
    return home / "wheels" / build.sha256 / build.wheel


def _file_name(source: str) -> str:
    return unquote(urlsplit(source).path.rpartition("/")[2]) if is_address(source) else Path(source).name


def _build(file: str, source: str, sha256: str) -> FrameworkBuild:
    """The build by the wheel's file name, which pip checks against its content."""
    # The base package, which checks requests with `check_source`, does not require `packaging`.
    from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

    try:
        name, version, _, _ = parse_wheel_filename(file)
    except InvalidWheelFilename as error:
        raise ConfigError("is not a wheel", key=KEY, found=source, expected=_EXPECTED) from error
    return FrameworkBuild(name=canonicalize_name(name), version=str(version), wheel=file, sha256=sha256)


def _checked(path: Path, build: FrameworkBuild, source: str, sha256: str, folder: Path) -> FrameworkBuild:
    digest = _check_hash(path, source, sha256)
    if not zipfile.is_zipfile(path):
        raise ConfigError("is not a wheel: no zip archive", key=KEY, found=source, expected=_EXPECTED)
    with zipfile.ZipFile(path) as archive:
        if not any(name.endswith(".dist-info/METADATA") for name in archive.namelist()):
            raise ConfigError("is not a wheel: it has no METADATA", key=KEY, found=source, expected=_EXPECTED)
    made = build.model_copy(update={"sha256": digest})
    target = _place(folder.parent, made)
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(f".{uuid.uuid4().hex}")
        shutil.copyfile(path, aside)
        aside.replace(target)
    os.utime(target)
    return made


def _check_hash(path: Path, source: str, sha256: str) -> str:
    """Return the hash of a file, after comparing it with the expected one, if there is one."""
    digest = _hash(path)
    if sha256 and digest != sha256:
        raise _other_hash(source, digest, sha256)
    return digest


def _hash(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _other_hash(source: str, digest: str, sha256: str) -> ConfigError:
    return ConfigError(f"{source} has another hash", key="--sha256", found=digest, expected=sha256)


def _check_host(host: str, hosts: str) -> None:
    """Refuse a host that is not allowed: a user who may start runs could reach any server of its network."""
    allowed = [pattern.strip().lower() for pattern in hosts.split(",") if pattern.strip()]
    if allowed and not any(fnmatchcase(host.lower(), pattern) for pattern in allowed):
        raise ConfigError(
            "the host of the address is not in TIPCFLOW_WHEEL_HOSTS",
            key=KEY,
            found=host,
            expected=", ".join(allowed),
        )


def _download(url: str, path: Path, hosts: str) -> None:
    with path.open("wb") as handle:
        for block in _blocks(url, hosts):
            handle.write(block)


def _blocks(url: str, hosts: str) -> Iterator[bytes]:
    """The content of an address in blocks, within `_FETCH_S`."""
    import httpx  # takes longer than most tasks without a wheel

    host = urlsplit(url).hostname or "the server"

    def check(request: httpx.Request) -> None:
        _check_host(request.url.host, hosts)  # called for each redirect, too

    client = httpx.Client(timeout=_CONNECT_S, follow_redirects=True, event_hooks={"request": [check]})
    try:
        with client, client.stream("GET", url) as response:
            if response.status_code != 200:
                raise ConfigError(
                    "cannot be fetched", key=KEY, found=f"{host}: {response.status_code}", expected="200"
                )
            until, size = time.monotonic() + _FETCH_S, 0
            for block in response.iter_bytes(1 << 20):
                size += len(block)
                if size > _MOST_BYTES:
                    raise ConfigError(
                        "is too large", key=KEY, found=f"more than {_MOST_BYTES >> 30} GiB", expected=_EXPECTED
                    )
                if time.monotonic() > until:
                    raise InfraError(f"the wheel was not fetched from {host} within {limit(_FETCH_S)}")
                yield block
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise InfraError(f"the wheel cannot be fetched from {host}: {error}") from error
