"""The text of every command that is sent to a node. Nothing else in the project quotes for a remote shell.

A command is one simple command that every login shell reads alike; what needs a script goes through `/bin/sh -c`.
"""

import json
import shlex
from collections.abc import Mapping, Sequence

from tipcflow.domain import Node, StoppedBy
from tipcflow.remote import paths
from tipcflow.remote.containers import inside
from tipcflow.remote.helping import helper

_RUNNER = ("-I", "-S", "-X", "utf8")
SHIMS = ("python", "python3", "python3.7", "pip", "pip3", "pip3.7")

ARCHIVE_DAMAGED, NO_SUCH_FILE, NO_PYTHON = 65, 66, 67
"""Exit codes of these commands that mean something: see `unpack`, `read_file` and `check_python`."""

# Deadlines on the node, seconds: longer than anybody waits for the answer.
TRANSFER_S, ASKED_S, EVIDENCE_S, LONGER_S = 330.0, 90.0, 60.0, 90.0


def _words(*words: str) -> str:
    return " ".join(shlex.quote(word) for word in words)


def _script(text: str, *arguments: str) -> str:
    """A POSIX shell script with its arguments as "$1", "$2" …: no value is ever part of the script's text."""
    return _words("/bin/sh", "-c", text.strip(), "tipcflow", *arguments)


def make_workspace(node: Node) -> str:
    """Make the workspace and its folders, readable by their owner alone; fails when it is not writable."""
    return _script(
        """
set -eu
umask 077
mkdir -p "$1"
cd "$1"
mkdir -p bin suites runs jobs slots
: > .writable
rm .writable
""",
        node.workspace,
    )


def check_python(node: Node) -> str:
    """Print the interpreter's version; exits with NO_PYTHON and a reason when it cannot run the runner."""
    return _script(
        f"""
[ -x "$1" ] || {{ echo "$1: no such interpreter" >&2; exit {NO_PYTHON}; }}
exec "$1" -I -S -c 'import sys
if sys.version_info < (3, 7): sys.exit("%s is Python %s, 3.7 is needed" % (sys.executable, sys.version.split()[0]))
print(sys.version.split()[0])'
""",
        node.python,
    )


def has_file(path: str, sha256: str = "") -> str:
    """Succeeds when the file is there; with a hash, when that is the hash of its content."""
    if not sha256:
        return _words("test", "-f", path)
    return _script(
        """
[ -f "$1" ] || exit 1
got=$(sha256sum < "$1")
[ "${got%% *}" = "$2" ]
""",
        path,
        sha256,
    )


def write_file(path: str, *, mode: int = 0o644, seconds: float = TRANSFER_S) -> str:
    """Write stdin to a file: all of it or nothing, its folder made if need be.

    Args:
        seconds: the deadline: the node may never hear that the connection is gone.
    """
    text = """
set -eu
umask 077
folder=$(dirname -- "$1"; echo .)
folder=${folder%??}
mkdir -p -- "$folder"
temporary="$1.$$.tmp"
trap 'rm -f -- "$temporary"' EXIT
trap 'exit 1' TERM HUP INT
cat > "$temporary"
chmod "$2" -- "$temporary"
mv -f -- "$temporary" "$1"
trap - EXIT
"""
    words = ["/bin/sh", "-c", text.strip(), "tipcflow", path, f"{mode:o}"]
    return _words(*helper("upload", path, seconds, words))


def read_file(path: str, *, offset: int = 0, limit: int | None = None) -> str:
    """Print a file's bytes from `offset` on, at most `limit`; exits with NO_SUCH_FILE when there is none."""
    take = 'tail -c "+$2" -- "$1"' + (' | head -c "$3"' if limit is not None else "")
    text = f'[ -f "$1" ] || {{ echo "$1: no such file" >&2; exit {NO_SUCH_FILE}; }}\n{take}'
    words = ["/bin/sh", "-c", text, "tipcflow", path, str(offset + 1), *([] if limit is None else [str(limit)])]
    return _words(*helper("fetch", path, TRANSFER_S, words))


def unpack(node: Node, run: str, sha256: str) -> str:
    """Make the run's root from the suite's archive, once; exits with ARCHIVE_DAMAGED when its hash is wrong."""
    return _script(
        f"""
set -eu
archive=$1 want=$2 root=$3
if [ -d "$root" ] && [ "$(cat -- "$root.sha256" 2>/dev/null)" = "$want" ]; then exit 0; fi
got=$(sha256sum < "$archive")
if [ "${{got%% *}}" != "$want" ]; then
    echo "$archive: sha256 is ${{got%% *}}, not $want" >&2
    rm -f -- "$archive"
    exit {ARCHIVE_DAMAGED}
fi
rm -rf -- "$root" "$root.unpacking"
mkdir -p -- "$root.unpacking"
tar -xzof "$archive" -C "$root.unpacking"
mv -- "$root.unpacking" "$root"
printf '%s\\n' "$want" > "$root.sha256"
""",
        paths.suite_archive(node, sha256),
        sha256,
        paths.run_root(node, run),
    )


def inherit(
    node: Node, run: str, of: str, sha256: str, *, needs: Sequence[str] = (), without: Sequence[str] = ()
) -> str:
    """Make the run's root from what another run left in its own, once; exits with NO_SUCH_FILE when that is gone.

    Files are hard links where that can be done: data and checkpoints may be large.

    Args:
        of: the other run, of the same code.
        needs: files or globs, relative to the root, of each of which one must be there.
        without: files that the run writes itself: the other's stay as they are.
    """
    return _script(
        f"""
set -eu
from=$1 root=$2 want=$3 needs=$4
shift 4
if [ -d "$root" ] && [ "$(cat -- "$root.sha256" 2>/dev/null)" = "$want" ]; then exit 0; fi
if [ ! -d "$from" ] || [ "$(cat -- "$from.sha256" 2>/dev/null)" != "$want" ]; then
    echo "$from is not there any more" >&2
    exit {NO_SUCH_FILE}
fi
IFS=
while [ "$needs" -gt 0 ]; do
    found=
    for one in "$from"/$1; do if [ -e "$one" ]; then found=1; fi; done
    if [ -z "$found" ]; then
        echo "$from/$1 is not there any more" >&2
        exit {NO_SUCH_FILE}
    fi
    shift
    needs=$((needs - 1))
done
rm -rf -- "$root" "$root.unpacking"
mkdir -p -- "${{root%/*}}"
if ! cp -al -- "$from" "$root.unpacking" 2>/dev/null; then
    rm -rf -- "$root.unpacking"
    cp -a -- "$from" "$root.unpacking"
fi
for one; do rm -f -- "$root.unpacking/$one"; done
mv -- "$root.unpacking" "$root"
printf '%s\\n' "$want" > "$root.sha256"
""",
        paths.run_root(node, of),
        paths.run_root(node, run),
        sha256,
        str(len(needs)),
        *needs,
        *without,
    )


def make_shims(node: Node, run: str, names: Sequence[str] = SHIMS) -> str:
    """Make `python`, `pip` … in the run's bin folder, which run the node's interpreter.

    Scripts, because a symbolic link to a virtual environment's interpreter loses the environment.
    """
    interpreter = shlex.quote(node.step_python)
    lines = ["set -eu", 'mkdir -p -- "$1"', 'cd -- "$1"']
    for name in names:
        module = " -m pip" if name.startswith("pip") else ""
        body = shlex.quote(f'#!/bin/sh\nexec {interpreter}{module} "$@"\n')
        lines.append(f"printf %s {body} > {shlex.quote(name)}.tmp")
        lines.append(f"chmod 755 {shlex.quote(name)}.tmp; mv -f {shlex.quote(name)}.tmp {shlex.quote(name)}")
    return _script("\n".join(lines), paths.run_bin(node, run))


def remove_run(node: Node, run: str) -> str:
    """Remove a run's folder and its job folders."""
    jobs = f"{node.workspace}/jobs/{paths.safe_name(run)}"
    return _words("rm", "-rf", "--", paths.run_dir(node, run), jobs)


def _runner(node: Node, *words: str, seconds: float = ASKED_S) -> str:
    runner = [node.python, *_RUNNER, paths.runner_path(node), *words]
    return _words(*helper(words[0], words[1], seconds, runner, timed=False))


def start(node: Node, job: str) -> str:
    """Start the job of this folder, or find it living or ended: prints what `poll` prints."""
    return _runner(node, "start", job)


def begin(node: Node, job: str, *, seconds: float, resume: Mapping[str, int] | None = None) -> str:
    """As `start`, with the job's description on stdin, which is kept unless there is one; then as `watch`.

    Prints what `start` prints as an event `answer`, then the job's events.
    """
    seen = json.dumps(dict(resume or {}), separators=(",", ":"))
    words = ["begin", job, "--for", f"{seconds:g}", "--resume", seen, "--files"]
    return _runner(node, *words, seconds=seconds + ASKED_S + LONGER_S)


def poll(node: Node, job: str) -> str:
    """Print the job's state, heartbeat, exit record and legs; renews its node lease."""
    return _runner(node, "poll", job)


def go(node: Node, job: str) -> str:
    """Let a staged job begin."""
    return _runner(node, "go", job)


def stop(node: Node, job: str, reason: str, by: StoppedBy) -> str:
    """Ask the job's runner to end it."""
    return _runner(node, "stop", job, reason, "--by", by.value)


def evidence(node: Node, job: str) -> str:
    """Print what can be seen of a living job that may hang, as one JSON object of at most 256 KiB.

    That is the progress of its logs, stacks of its Python processes, sockets, kernel messages, GPUs. It takes up
    to 40 seconds. The job goes on, with its stacks in its logs where there is no py-spy. Renews its node lease.
    """
    return _runner(node, "evidence", job, seconds=EVIDENCE_S)


def watch(
    node: Node, job: str, *, seconds: float, resume: Mapping[str, int] | None = None, files: bool = False
) -> str:
    """Print the job's events as JSON lines, for at most so many seconds; renews its node lease.

    Args:
        resume: leg -> how many bytes of its log are here already.
        files: print the small files that the job leaves, too, before its end.
    """
    seen = json.dumps(dict(resume or {}), separators=(",", ":"))
    words = ["watch", job, "--for", f"{seconds:g}", "--resume", seen, *(["--files"] if files else [])]
    return _runner(node, *words, seconds=seconds + LONGER_S)


def list_ours(node: Node) -> str:
    """Print every process that carries this workspace's mark, and every job folder with its state."""
    return _runner(node, "list", node.workspace)


def reap(
    node: Node,
    *,
    job: str = "",
    living: bool = False,
    helpers: bool = False,
    by: StoppedBy = StoppedBy.CONTROLLER,
) -> str:
    """End the processes of jobs that are over.

    Args:
        job: `run/step/attempt`: only this job, but also when it lives.
        living: all jobs of the workspace, also those that live.
        helpers: no job: only controllers' commands that nobody waits for any more.
        by: who ends the jobs that live.
    """
    words = ["--job", job] if job else ["--living"] if living else ["--helpers"] if helpers else []
    who = [] if by is StoppedBy.CONTROLLER else ["--by", by.value]
    return _runner(node, "reap", node.workspace, *words, *who, seconds=ASKED_S + LONGER_S)


def facts(node: Node, peers: Mapping[str, str], *, port: int = 22) -> str:
    """Print what the node says about itself; in its container, where it has one: that is what steps will see.

    Args:
        peers: name -> address (or address:port) of the nodes that it must reach.
        port: where the peers' ssh listens, unless an address says otherwise.
    """
    told = ",".join(f"{name}={address}" for name, address in peers.items())
    words = ["facts", node.workspace, "--python", node.step_python, "--peers", told, "--port", str(port)]
    return _words(*inside(node, [node.step_python, *_RUNNER, paths.runner_path(node), *words]))
