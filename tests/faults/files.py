"""Faults of files: what a node's disk, an intruder or a broken program puts in the place of logs and records."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from tests.faults.fault import CODE_ERROR, DISK, EVIDENCE_LOST, FAILED, INFRA, Fault
from tests.faults.world import World

INODES = 4000
FILL = "import itertools, sys\nfor n in itertools.count(): open(f'{sys.argv[1]}/filler.{n}', 'w').close()"


def _replace_logs(put: Callable[[World, Path], None]) -> object:
    """All worker logs of the node become something else."""

    def strike(world: World) -> None:
        logs = list(world.workspace.glob("runs/*/src/**/workerlog.*"))
        if not logs:
            world.notes.append("no worker log")
        for path in logs:
            path.unlink()
            put(world, path)

    return strike


def _link_to_a_secret(world: World, path: Path) -> None:
    """A file that the node's user may read and no run may fetch."""
    kept = world.folder / "secret"
    world.secret = world.secret or secrets.token_hex(16)
    kept.write_text(f"{world.secret}\n")
    path.symlink_to(kept)


def _fake_exit_record(world: World) -> None:
    """The rank writes a record of success into the job's folder, then it fails."""
    jobs = f"__import__('glob').glob('{world.workspace}/jobs/*/*train/*')"
    parts = "map(__import__('urllib.parse').parse.unquote, one.split('/')[-3:])"
    names = f"zip(('run', 'step', 'attempt'), {parts})"
    record = f"dict({names}, node='{world.target}', started_at=1, ended_at=2, reason='exited', exit_code=0)"
    write = f"__import__('json').dump({record}, open(one + '/exit.json', 'w'))"
    world.at_iteration(f"[{write} for one in {jobs}] and sys.exit(1)")


def _foreign_exit_record(world: World) -> None:
    """The rank puts a record in the place of the runner's that names a run which the database does not know."""
    jobs = f"__import__('glob').glob('{world.workspace}/jobs/*/*train/*')"
    named = f"run='another', step='another', attempt=7, node='{world.target}'"
    record = (
        f"dict({named}, started_at=1, ended_at=2, reason='exited', exit_code=0, peak_rss_bytes={{'total': 5}})"
    )
    write = f"__import__('json').dump({record}, open(one + '/other', 'w'))"
    # As the runner does: its reserved space becomes the record. Jobs that have ended have none.
    reserved = "__import__('os').path.exists(one + '/exit.json.reserved')"
    replace = "os.rename(one + '/other', one + '/exit.json.reserved')"
    rename = "os.rename(one + '/exit.json.reserved', one + '/exit.json')"
    world.at_iteration(f"[({write}, {replace}, {rename}) for one in {jobs} if {reserved}]")


def _garbage_in_legs(world: World) -> None:
    """The inference script appends lines that are no records to those of its job."""
    script = world.site.suite / "deploy" / "infer.py"
    jobs = [f"{node.workspace}/jobs/*/*infer*/*" for node in world.nodes.cluster.nodes]
    lines = [
        "import glob",
        f"for one in [path for pattern in {jobs} for path in glob.glob(pattern)]:",
        "    with open(one + '/legs.jsonl', 'a') as file:",
        "        file.write('rubbish\\n{\"leg\": 7}\\n')",
    ]
    script.write_text("\n".join([*lines, script.read_text()]))


def _few_inodes(world: World) -> None:
    workspace = str(world.workspace)
    world.execute("mkdir", "-p", workspace)
    world.execute("mount", "-t", "tmpfs", "-o", f"size=300m,nr_inodes={INODES}", "tmpfs", workspace)
    world.undo.append(lambda: world.nodes.exec(world.target, ["umount", "-l", workspace]) and None)


def _use_inodes(world: World) -> None:
    # The command ends with an error when no file can be created any more: that is the point.
    world.nodes.exec(world.target, ["python3", "-c", FILL, str(world.workspace)])


def _read_only(world: World) -> None:
    workspace = str(world.workspace)
    world.execute("mkdir", "-p", workspace)
    world.execute("mount", "--bind", workspace, workspace)
    world.execute("mount", "-o", "remount,bind,ro", workspace)
    world.undo.append(lambda: world.nodes.exec(world.target, ["umount", "-l", workspace]) and None)


FAULTS = (
    Fault(
        "log becomes a FIFO",
        "worker logs are replaced by FIFOs",
        INFRA,
        strike=_replace_logs(lambda _, path: os.mkfifo(path)),
        healed=True,
        alone=True,
        classes=EVIDENCE_LOST,
        loses_logs=True,
    ),
    Fault(
        "log becomes /dev/zero",
        "worker logs are replaced by links to /dev/zero",
        INFRA,
        strike=_replace_logs(lambda _, path: path.symlink_to("/dev/zero")),
        healed=True,
        alone=True,
        classes=EVIDENCE_LOST,
        loses_logs=True,
    ),
    Fault(
        "log becomes a secret",
        "worker logs are replaced by links to a file outside of the workspace, which is not fetched",
        INFRA,
        strike=_replace_logs(_link_to_a_secret),
        healed=True,
        alone=True,
        classes=EVIDENCE_LOST,
        loses_logs=True,
    ),
    Fault(
        "fake exit record",
        "a rank writes an exit record with exit code 0 into the job's folder and exits with 1",
        FAILED,
        prepare=_fake_exit_record,
        classes=CODE_ERROR,
        names_rank=True,
    ),
    Fault(
        "exit record of another run",
        "a rank replaces the job's exit record by one that names another run, step and attempt",
        INFRA,
        prepare=_foreign_exit_record,
        classes=EVIDENCE_LOST,
        loses_logs=True,
    ),
    Fault(
        "rubbish in legs.jsonl",
        "inference scripts append lines that are no exit records to those of their legs",
        INFRA,
        prepare=_garbage_in_legs,
        names_node=False,
        alone=True,
        classes=EVIDENCE_LOST,
    ),
    Fault(
        "no inodes",
        "the node's file system has no inodes left",
        INFRA,
        prepare=_few_inodes,
        strike=_use_inodes,
        healed=True,
        alone=True,
        classes=DISK,
    ),
    Fault(
        "read-only workspace",
        "the workspace is on a read-only file system",
        INFRA,
        prepare=_read_only,
        alone=True,
        classes=DISK,
    ),
)
