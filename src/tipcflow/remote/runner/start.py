"""Start of a job: exactly one daemon per job folder, however often it is requested."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import select
import socket
import struct
import sys
import time

from .files import Json, describe, load, save, touch_lease
from .processes import MARK_GUARD, marks

PATIENCE_S = 60.0
STARTER_S = 15.0  # time limit for the start of a starter, which begins with its allocation
# Variables of another launcher that a login session may carry over and that would mislead tipcflow's launcher.
# With those of SSH, `bash -c` reads ~/.bashrc, where pyenv or conda put another `python` first on PATH.
FOREIGN = re.compile(
    r"(PADDLE_|FLAGS_selected_|TRAINER|TIPCFLOW_).*|TRAINING_ROLE|POD_.*|(LOCAL_)?RANK|WORLD_SIZE|MASTER_(ADDR|PORT)"
    r"|SSH2?_CLIENT"
)


def refusal(spec: Json, message: str, *, code: str = "", interpreter: str = "") -> Json:
    """Return the exit record of a job that did not start.

    Args:
        code: name of the operating system's error, '' if it is another reason.
        interpreter: the interpreter that could not be executed, '' for none.
    """
    now = time.time()
    keys = {key: spec[key] for key in ("run", "step", "attempt", "node")}
    return dict(
        keys, schema_version=1, leg="", reason="refused", message=message, errno=code, interpreter=interpreter,
        started_at=now, ended_at=now,
    )  # fmt: skip


def code_of(error: BaseException) -> str:
    """Return the name of the operating system's error, as ENOSPC; '' for any other error."""
    number = error.errno if isinstance(error, OSError) else None
    return "" if number is None else errno.errorcode.get(number, str(number))


def environment(spec: Json) -> dict[str, str]:
    """Return the login session's environment without variables of other launchers and of SSH, with the marks."""
    env = {name: value for name, value in os.environ.items() if not FOREIGN.fullmatch(name)}
    return dict(env, TIPCFLOW_RUNNER="1", **marks(spec))


def describe_job(folder: str, text: str) -> Json | None:
    """Create the job's folder and store its description, unless one exists: a job keeps its original
    description.

    Returns:
        the result of `describe` with a refusal if the description cannot be stored, else None.
    """
    path = os.path.join(folder, "job.json")
    if os.path.exists(path):
        return None
    try:
        before = os.umask(0o077)
        os.makedirs(folder, exist_ok=True)
        os.umask(before)
        save(path, text)
    except OSError as error:
        record = refusal(json.loads(text), f"cannot write {path}: {error.strerror}", code=code_of(error))
        return dict(describe(folder), state="ended", record=record)
    return None


def start(folder: str) -> Json:
    """Start the job of this folder unless it was ever started; return the result of `describe` once the state
    is settled."""
    spec = load(os.path.join(folder, "job.json"))
    if not spec:
        return dict(describe(folder), message=f"{folder}/job.json is missing or not JSON")
    try:
        lock = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        record = refusal(spec, f"{folder}: {error.strerror}", code=code_of(error))
        return dict(describe(folder), state="ended", record=record)
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # a runner, another start, or a process that checks whether a runner exists
            report = describe(folder)
            if report["state"] in ("staged", "running") or time.monotonic() > until:
                touch_lease(folder)
                return report
            time.sleep(0.01)
            continue
        report = describe(folder)
        if report["record"] or report["pid"]:  # it ran before: an attempt is never started twice
            os.close(lock)  # this process may continue with `watch`, and would mistake its own lock for a runner's
            return dict(report, state="ended" if report["record"] else "lost")
        return launch(folder, spec, lock)


def start_below(starter: str, folder: str) -> Json:
    """As `start`, by a process that outlives this one: the starter of a Slurm allocation.

    Slurm ends the processes of a step with the step, and this process is part of a short one. The starter is
    `tipcflow/remote/slurm/starter.py`.

    Args:
        starter: `<job>/<node>` of the allocation.
    """
    words = [sys.executable, "-I", "-S", "-X", "utf8", os.path.abspath(sys.argv[0]), "start", folder]
    name, until = f"tipcflow-starter/{os.getuid()}/{starter}", time.monotonic() + STARTER_S
    message = ""
    while time.monotonic() < until:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(PATIENCE_S + STARTER_S)
            try:
                client.connect("\0" + name)
                peer = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
                if struct.unpack("3i", peer)[1] != os.getuid():
                    message = "is a process of another user"
                    break
                client.sendall(json.dumps({"words": words}).encode() + b"\n")
                with client.makefile("rb") as lines:
                    report = json.loads(lines.readline().decode() or "null")
                if isinstance(report, dict):
                    return report
                message = "sent no response"
                break
            except (OSError, ValueError) as error:
                message = f"does not respond: {error}"
        time.sleep(0.1)
    spec = load(os.path.join(folder, "job.json")) or {}
    report = describe(folder)
    if not spec or report["record"] or report["pid"]:
        return report
    refused = refusal(spec, f"the starter of Slurm allocation {starter.partition('/')[0]} {message}")
    return dict(report, state="ended", record=refused)


def launch(folder: str, spec: Json, lock: int) -> Json:
    """Pass the lock to a daemon and wait until the state is settled: staged, running, or refused."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            if os.fork() == 0:
                daemonise(folder, spec, lock, writer)
        finally:
            os._exit(0)
    os.close(writer)
    os.close(lock)
    os.waitpid(child, 0)
    sent = b""
    until = time.monotonic() + PATIENCE_S
    while select.select([reader], [], [], max(0.0, until - time.monotonic()))[0]:
        piece = os.read(reader, 65536)
        if not piece:
            break
        sent += piece
    report = describe(folder)
    if sent:  # a refusal whose record could perhaps not be written
        reason = json.loads(sent.decode())
        return dict(
            report,
            state="ended",
            record=report["record"] or refusal(spec, reason["message"], code=reason["errno"]),
        )
    return report


def daemonise(folder: str, spec: Json, lock: int, writer: int) -> None:
    """Start the daemon and become its guard: stdio to runner.log, fresh interpreters that carry the marks."""
    try:
        log = os.open(os.path.join(folder, "runner.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError:
        log = os.open(os.devnull, os.O_WRONLY)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir("/")
    this = [sys.executable, "-I", "-S", "-X", "utf8", os.path.abspath(sys.argv[0])]
    env = environment(spec)
    ready, notify = os.pipe()
    child = os.fork()
    if child:
        for file in (lock, writer, ready):  # the holder of the lock counts as the living runner
            os.close(file)
        os.set_inheritable(notify, True)
        own = {name: value for name, value in env.items() if name != "TIPCFLOW_RUNNER"}
        os.execve(
            sys.executable, [*this, "guard", folder, str(child), str(notify)], dict(own, **{MARK_GUARD: "1"})
        )
    os.close(notify)
    for file in (lock, writer, ready):
        os.set_inheritable(file, True)
    os.execve(sys.executable, [*this, "daemon", folder, str(lock), str(writer), str(ready)], env)
