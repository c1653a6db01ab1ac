"""What all transports share: files are written and read by commands, and nodes may be parts of an allocation."""

import io
import shutil
import tarfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from tipcflow.domain import FailureClass, InfraError, Node
from tipcflow.remote import commands
from tipcflow.remote.fetching import Listed, listed_in, pack_files
from tipcflow.remote.runner.outputs import is_secret
from tipcflow.remote.slurm import commands as slurm
from tipcflow.remote.slurm.output import SlurmJob, is_over, jobs_in
from tipcflow.transport.base import Completed

STATE_S = 30.0


class CommandTransport(ABC):
    """A transport that only needs to run commands: see `tipcflow.transport.base.Transport`.

    A command for a node of a Slurm allocation runs as a step, which is started on the login node; `node` then is
    that node, and the connection is one to the login node.
    """

    def __init__(self, node: Node) -> None:
        self.node = node

    def run(self, command: str, *, input: bytes | None = None, timeout: float = 60.0) -> Completed:  # noqa: A002
        """Run a command to its end; `timeout` limits the whole command, seconds."""
        return self._run(self.on_node(command), io.BytesIO(input or b""), timeout)

    def put(self, data: bytes | Path, remote: str, *, mode: int = 0o644, timeout: float = 300.0) -> None:
        """Write a file on the node atomically."""
        command = commands.write_file(remote, mode=mode, seconds=timeout + 30)
        with io.BytesIO(data) if isinstance(data, bytes) else data.open("rb") as source:
            done = self._run(self.on_node(command), source, timeout)
        if done.exit_code:
            raise self._failed(f"cannot write {remote}", done.stderr)

    def get(
        self,
        remote: str,
        local: Path | None = None,
        *,
        offset: int = 0,
        limit: int | None = None,
        timeout: float = 300.0,
    ) -> bytes:
        """Return a file's bytes, or write them to `local` atomically."""
        command = self.on_node(commands.read_file(remote, offset=offset, limit=limit))
        if local is None:
            sink = io.BytesIO()
            self._check_read(remote, self._run(command, io.BytesIO(), timeout, sink))
            return sink.getvalue()
        local.parent.mkdir(parents=True, exist_ok=True)
        aside = local.with_name(local.name + ".part")
        try:
            with aside.open("wb") as file:
                self._check_read(remote, self._run(command, io.BytesIO(), timeout, file))
            aside.replace(local)
        finally:
            aside.unlink(missing_ok=True)
        return b""

    def get_more(self, remote: str, local: Path, *, limit: int, timeout: float = 300.0) -> None:
        """Append a file's bytes to `local`, starting at its current size; bytes that arrived before an error
        stay."""
        local.parent.mkdir(parents=True, exist_ok=True)
        with local.open("ab") as file:
            offset = file.tell()
            if offset < limit:
                command = self.on_node(commands.read_file(remote, offset=offset, limit=limit - offset))
                self._check_read(remote, self._run(command, io.BytesIO(), timeout, file))

    def get_many(
        self, root: str, names: Sequence[str], local: Path, *, limit: int, timeout: float = 300.0
    ) -> dict[str, Listed]:
        """List files below `root`, and fetch the small ones into the folder `local`."""
        wanted = [name for name in names if not is_secret(name)]
        if not wanted:
            return {}
        local.mkdir(parents=True, exist_ok=True)
        incoming = local / ".incoming"
        command = self.on_node(pack_files(root, wanted, limit=limit))
        try:
            with incoming.open("wb") as file:
                done = self._run(command, io.BytesIO(), timeout, file)
            if done.exit_code:
                raise self._failed(f"cannot read files of {root}", done.stderr)
            with incoming.open("rb") as file:
                head = list(iter(lambda: file.readline().rstrip(b"\n"), b""))
                try:
                    listed = listed_in(head, wanted)
                except ValueError as error:
                    raise self._error(f"unexpected output of the file listing: {head[:1]!r}") from error
                self._unpack(file, local)
            return listed
        finally:
            incoming.unlink(missing_ok=True)

    def check_allocation(self) -> None:
        """Check that the node's allocation, if it is part of one, is running.

        Raises:
            InfraError: it has ended, with failure class `node_lost`. The error's node is the one that is down, if
                another node of the allocation is.
        """
        place = self.node.slurm
        if place is None or place.login:
            return
        if not place.job:
            raise self._error("is not allocated: a run of a Slurm cluster allocates its nodes")
        done = self._run(slurm.state(self.node), io.BytesIO(), STATE_S)
        output, errors = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        if not is_over(done.exit_code, output, errors, name=place.name):
            return
        jobs = jobs_in(output, place.name)
        why = f" ({jobs[0].ended_by})" if jobs else ""
        down = self._down(jobs[0]) if jobs else []
        cause = ""
        if down and self.node.name not in down:
            cause = f" because {'node' if len(down) == 1 else 'nodes'} {', '.join(down)} failed"
        raise InfraError(
            f"node {self.node.name}: the allocation has ended{cause}: Slurm job {place.job}{why}",
            node=down[0] if cause else self.node.name,
            failure_class=FailureClass.NODE_LOST,
        )

    def _down(self, job: SlurmJob) -> list[str]:
        """Return the nodes of an ended job that are down; none if a failed node did not end it, or if unknown."""
        if not (job.lost_a_node and job.nodelist):
            return []
        try:
            done = self._run(slurm.down(job.nodelist), io.BytesIO(), STATE_S)
        except InfraError:
            return []
        return sorted(set(done.stdout.decode(errors="replace").split())) if done.exit_code == 0 else []

    @abstractmethod
    def close(self) -> None:
        """End the connection."""

    @abstractmethod
    def _run(
        self, command: str, source: io.BufferedIOBase, timeout: float, sink: io.BufferedIOBase | None = None
    ) -> Completed:
        """Run a command where the connection leads, with stdin from `source` and stdout to `sink`, if any."""

    def on_node(self, command: str) -> str:
        """Return the command that runs `command` on the node, given where the connection leads."""
        try:
            return slurm.on_node(self.node, command)
        except ValueError as error:
            raise InfraError(str(error), node=self.node.name) from error

    def own_stderr(self, code: int, stderr: bytes) -> bytes:
        """Return what a command printed to stderr, without the messages of Slurm about its exit code.

        Raises:
            InfraError: Slurm could not run it: the node or its allocation may be lost.
        """
        place = self.node.slurm
        if place is None or place.login:
            return stderr
        if code == slurm.SLURM_FAILED:
            raise self._error(f"no step in Slurm job {place.job}: {last_line(stderr)}")
        lines = stderr.splitlines(keepends=True)
        return b"".join(line for line in lines if not line.startswith((b"srun: ", b"slurmstepd: ")))

    def _unpack(self, archive: io.BufferedReader, local: Path) -> None:
        """Extract regular files only (a link could point anywhere), and only below `local`."""
        # tarfile's own filters are newer than Debian 12's Python.
        root = local.resolve()
        with tarfile.open(fileobj=archive, mode="r:") as tar:
            for member in tar:
                if is_secret(member.name) or not member.isreg():
                    continue
                target = (root / member.name).resolve()
                content = tar.extractfile(member) if target.is_relative_to(root) else None
                if content is None:
                    raise self._error(f"sent {member.name!r}, which would leave the folder")
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as file:
                    shutil.copyfileobj(content, file)

    def _check_read(self, remote: str, done: Completed) -> None:
        if done.exit_code == commands.NO_SUCH_FILE:
            raise FileNotFoundError(f"{self.node.name}:{remote}")
        if done.exit_code:
            raise self._failed(f"cannot read {remote}", done.stderr)

    def _failed(self, what: str, stderr: bytes) -> InfraError:
        """Return the error of a command that reported a reason."""
        line = last_line(stderr)
        return InfraError.of_node(self.node.name, f"{what}: {line}", output=line)

    def _error(self, message: str) -> InfraError:
        return InfraError.of_node(self.node.name, message)


def last_line(text: bytes) -> str:
    """Return the last line of what a command printed."""
    lines = text.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "no reason given"
