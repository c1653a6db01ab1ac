"""Runs a suite's own script in a copy of its folder, with programs that record their call instead of running.

The script runs as the current user, with its own text: it is code, as it is on a node (docs/trust.md). The sandbox
keeps it from the suite's folder, from Python, and from programs that fetch, delete or install; where the kernel
permits, also from the network.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from stat import S_IFMT, S_ISLNK, S_ISREG

from tipcflow.domain import ConfigError
from tipcflow.domain.numbers.units import limit

# Programs that a script may really use: they read and write files of the copy only.
_REAL = """
    awk basename bash cat chmod cmp cp cut date diff dirname echo egrep env expr false find getconf grep head ln ls
    mkdir mktemp mv nproc printf pwd readlink realpath sed seq sh sort stat tail tee test
    touch tr true uname uniq wc which xargs
""".split()  # noqa: SIM905
# Programs that only record their call and succeed.
_STUBS = """
    apt apt-get brew bzip2 cmake conda curl docker gcc g++ git gunzip gzip hg hub ifconfig ip kill killall make
    mpirun npu-smi nvcc nvidia-smi paddle paddle2onnx paddle_lite_opt pip pip2 pip3 pkill ps python python2 python3
    rm rmdir rsync scp sleep ssh sudo tar unzip wget xpu_smi yum
""".split()  # noqa: SIM905
_VERSIONS = [f"python3.{minor}" for minor in range(6, 16)]
# A command counts if one of these runs within it; others (rm, wget, pip) prepare and clean up.
_COUNTED = re.compile(r"^(?:python[\d.]*|paddle2onnx)$")
# Larger files are data; the copy has empty ones in their place.
_LARGEST = 1 << 20
_DEADLINE_S = 120.0
_PYTHON = re.compile(r"^python:([^\s:|;&$`'\"]+)\s*$", re.MULTILINE)

_STUB = """#!/bin/sh
{ printf '%s\\0' "${TIPCFLOW_EVAL-}" "$PWD" "${CUDA_VISIBLE_DEVICES-unset}" "${0##*/}"
  printf '%s ' "${0##*/}" "$@"; printf '\\0'; } >>"$TIPCFLOW_RECORDS/calls"
exit 0
"""
# timeout, nohup and setsid: the command runs in the script's process group, which ends with the script.
_THROUGH = """#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
        -k | -s | --kill-after | --signal) shift 2 ;;
        -*) shift ;;
        *) break ;;
    esac
done
%sexec "$@"
"""
# eval: the words that the script evaluates are the command. [ and test: a script that looks for what a training
# leaves finds it.
_FUNCTIONS = r"""
eval() {
    TIPCFLOW_EVAL=$(IFS=' '; printf '%s' "$*" >>"$TIPCFLOW_RECORDS/evals"; printf '\0' >>"$TIPCFLOW_RECORDS/evals"
        wc -c <"$TIPCFLOW_RECORDS/evals")
    export TIPCFLOW_EVAL
    builtin eval "$@"
    set -- $?
    unset TIPCFLOW_EVAL
    return $1
}
_tipcflow_leave() {
    local last
    while [[ $# -gt 1 ]]; do
        if [[ $1 == -[efs] && -n $2 && ! -e $2 && -s $TIPCFLOW_RECORDS/calls && $2 != *['*?']* ]]; then
            case $2 in
                /*) [[ $2 == "$TIPCFLOW_ROOT"/* ]] || return ;;
            esac
            mkdir -p "$(dirname "$2")" && echo >"$2"
        fi
        shift
    done
}
[() { _tipcflow_leave "$@"; builtin [ "$@"; }
test() { _tipcflow_leave "$@"; builtin test "$@"; }
"""


@dataclass(frozen=True)
class Recorded:
    """One command that the script ran.

    Attributes:
        text: the words that the script evaluated; `$ROOT` is the suite's root.
        cwd: working directory, relative to the suite's root.
        cuda: value of CUDA_VISIBLE_DEVICES, None if it is not set.
    """

    text: str
    cwd: str
    cuda: str | None


class Sandbox:
    """A copy of a suite's folder in which its scripts run.

    Args:
        root: the suite's folder, which contains `test_tipc`. It is only read.
        work: an empty folder.
    """

    def __init__(self, root: Path, work: Path) -> None:
        self._source = root.resolve()
        self._home, self._root = work / "home", (work / "suite").resolve()
        self._records, self._bin = work / "records", work / "bin"
        for folder in (self._home, self._records, self._bin):
            folder.mkdir()
        self._functions = work / "functions.sh"
        self._functions.write_text(_FUNCTIONS)
        self._own: set[str] = set()
        self._copy()
        self._kept = dict(_entries(self._root))
        self._programs()
        self._wrap = _without_network()

    def run(self, script: str, params: str, mode: str) -> list[Recorded]:
        """Run `bash SCRIPT PARAMS MODE` and return its commands in order.

        Args:
            script, params: paths relative to the suite's root.

        Raises:
            ConfigError: the script does not end, or the params file names an interpreter by its path.
        """
        self._reset()
        self._add_python((self._root / params).read_text(encoding="utf-8", errors="replace"), params)
        for name in ("calls", "evals"):
            (self._records / name).write_bytes(b"")
        environment = {
            "PATH": str(self._bin),
            "HOME": str(self._home),
            "LANG": "C.UTF-8",
            "BASH_ENV": str(self._functions),
            "TIPCFLOW_RECORDS": str(self._records),
            "TIPCFLOW_ROOT": str(self._root),
        }
        process = subprocess.Popen(
            [*self._wrap, shutil.which("bash") or "bash", script, params, mode],
            cwd=self._root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(_DEADLINE_S)
        except subprocess.TimeoutExpired:
            raise ConfigError(f"{script} did not end within {limit(_DEADLINE_S)}", file=params, key=mode) from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return list(self._commands())

    def _commands(self) -> Iterator[Recorded]:
        """Return one command per evaluated text that ran a counted program, and per counted call outside eval."""
        evals = (self._records / "evals").read_bytes()
        fields = (self._records / "calls").read_bytes().decode("utf-8", errors="replace").split("\0")[:-1]
        seen = set()
        for number in range(0, len(fields) - 4, 5):
            place, cwd, cuda, program, call = fields[number : number + 5]
            if place in seen or not (_COUNTED.match(program) or program in self._own):
                continue
            text = call.rstrip()
            if place:
                seen.add(place)
                text = evals[: int(place) - 1].rpartition(b"\0")[2].decode("utf-8", errors="replace")
            text = text.replace(str(self._root), "$ROOT")
            yield Recorded(text, os.path.relpath(cwd, self._root), None if cuda == "unset" else cuda)

    def _copy(self) -> None:
        """Copy the suite without its repository, without links that lead out of it, and without large contents."""

        def ignored(folder: str, names: list[str]) -> list[str]:
            links = [path for name in names if (path := Path(folder, name)).is_symlink()]
            return [".git", *(link.name for link in links if not self._stays(link))]

        def copied(source: str, target: str) -> None:
            if Path(source).stat().st_size > _LARGEST:
                Path(target).touch()
            else:
                shutil.copyfile(source, target)

        shutil.copytree(self._source, self._root, ignore=ignored, copy_function=copied, symlinks=True)

    def _stays(self, link: Path) -> bool:
        """Whether a link leads to a path in the suite, also in a copy of the suite."""
        return not link.readlink().is_absolute() and link.resolve().is_relative_to(self._source)

    def _programs(self) -> None:
        for name in _REAL:
            if path := shutil.which(name):
                (self._bin / name).symlink_to(path)
        for name in (*_STUBS, *_VERSIONS):
            self._stub(name)

        for name, duration in (("timeout", "shift\n"), ("nohup", ""), ("setsid", "")):
            (self._bin / name).write_text(_THROUGH % duration)
            (self._bin / name).chmod(0o755)

    def _stub(self, name: str) -> None:
        (self._bin / name).write_text(_STUB)
        (self._bin / name).chmod(0o755)

    def _add_python(self, text: str, params: str) -> None:
        """Record the interpreter that a params file names, which must be a plain name."""
        match = _PYTHON.search(text)
        if match is None:
            return
        if "/" in match[1]:
            raise ConfigError(
                "this interpreter would run outside of the sandbox", file=params, key="python", found=match[1],
                expected="a name without a folder, for example python3",
            )  # fmt: skip
        if not (self._bin / match[1]).exists():
            self._stub(match[1])
            self._own.add(match[1])

    def _reset(self) -> None:
        """Undo what the last script changed in the copy."""
        now = dict(_entries(self._root))
        if any(now.get(path) != state for path, state in self._kept.items() if isinstance(state, str)):
            # A folder that was removed or became a link: nothing is written through it.
            shutil.rmtree(self._root)
            self._copy()
            self._kept = dict(_entries(self._root))
            return
        for path in sorted(now.keys() - self._kept.keys(), reverse=True):
            full = self._root / path
            if full.is_dir() and not full.is_symlink():
                shutil.rmtree(full, ignore_errors=True)
            else:
                full.unlink(missing_ok=True)
        for path, state in self._kept.items():
            if not isinstance(state, str) and now.get(path) != state:
                full = self._root / path
                if full.is_dir() and not full.is_symlink():
                    shutil.rmtree(full)
                # A file without content is a large one, or has none.
                full.unlink(missing_ok=True)
                full.write_bytes((self._source / path).read_bytes() if state[1] else b"")
                stat = full.stat()
                self._kept[path] = (stat.st_mtime_ns, stat.st_size)


def _entries(root: Path) -> Iterator[tuple[str, tuple[int, int] | str]]:
    """Return (relative path, state) of all entries: (time of modification, size) of a regular file, otherwise the
    kind and a link's target."""
    for path in root.rglob("*"):
        stat = path.lstat()
        if S_ISREG(stat.st_mode):
            yield str(path.relative_to(root)), (stat.st_mtime_ns, stat.st_size)
        else:
            target = str(path.readlink()) if S_ISLNK(stat.st_mode) else ""
            yield str(path.relative_to(root)), f"{S_IFMT(stat.st_mode):o} {target}"


def _without_network() -> list[str]:
    """Return the words before a command that has no network; none where the kernel refuses."""
    if not (unshare := shutil.which("unshare")):
        return []
    command = [unshare, "--net"] if os.geteuid() == 0 else [unshare, "--map-root-user", "--net"]
    try:
        done = subprocess.run([*command, "true"], capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return command if done.returncode == 0 else []
