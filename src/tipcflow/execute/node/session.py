"""One node during one run: executes the commands of tipcflow.remote over one connection."""

import hashlib
import itertools
import json
import os
import posixpath
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tipcflow.domain import FailureClass, InfraError, JobSpec, NodeFacts, StoppedBy
from tipcflow.domain.build import FrameworkBuild
from tipcflow.domain.run.names import JobId
from tipcflow.execute.node.containers import usable_image
from tipcflow.execute.node.fetch import Fetched, FolderFetch, changed_since, listed_artefacts
from tipcflow.execute.node.inline_files import NO_INLINE_FILES, InlineFiles
from tipcflow.execute.node.link import NodeLink
from tipcflow.remote import claims, commands, paths
from tipcflow.remote.bundle import runner_bytes
from tipcflow.remote.fetching import list_matching
from tipcflow.remote.runner.outputs import is_secret
from tipcflow.transport import Completed, Transport

QUERY_S = 30.0
# Cleanup waits no longer than this for a lost node: maintenance repeats it later.
SHORT_QUERY_S = 10.0
_SIGNALED = -1
# A wheel of Paddle for GPUs has 2 GB.
WHEEL_S = 1800.0
JOB_FILES = (
    "samples.jsonl",
    "exit.json",
    "legs.jsonl",
    "runner.log",
    "evidence.json",
    "artefacts.json",
    "before.json",
    "opened.txt",
)


class NodeSession(NodeLink):
    """A connected node that executes commands. Methods raise InfraError, which names the node."""

    def reconnect(self) -> None:
        """Open a new connection to the same node."""
        self.open_again(self._transport, patience_s=0.0)
        # The node may have been reinstalled, or another tipcflow version may have replaced the runner.
        self._put_once(runner_bytes(), paths.runner_path(self._node))

    def prepare(self) -> None:
        """Create the workspace, check the interpreter, install the runner if it is missing."""
        self.call(commands.make_workspace(self._node), "create the workspace")
        self.call(
            commands.check_python(self._node), "find a working Python", hint="see `python` in the cluster file"
        )
        runner = paths.runner_path(self._node)
        self._put_once(runner_bytes(), runner)

    def check_responds(self) -> None:
        """Check that the node responds now.

        Raises:
            InfraError: it does not, within a short time.
        """
        command = commands.check_python(self._node)
        self.call(command, "respond", timeout=SHORT_QUERY_S, patience_s=SHORT_QUERY_S)

    def facts(self, peers: Mapping[str, str]) -> NodeFacts:
        """Return the facts of the node.

        Args:
            peers: name -> address[:ssh port] of the nodes that it must reach.
        """
        image = usable_image(self.transport, self._node)
        before = time.time()
        reported = self.call_json(commands.facts(self._node, peers), "report its facts")
        middle = (before + time.time()) / 2
        clock = float(reported.pop("clock", 0.0) or 0.0)
        reported = {key: value for key, value in reported.items() if key in NodeFacts.model_fields}
        if image:
            reported["container"] = image
        skew = round(clock - middle, 3) if clock else 0.0
        try:
            return NodeFacts.model_validate({**reported, "node": self._node.name, "clock_skew_s": skew})
        except ValidationError as error:
            keys = ", ".join(str(detail["loc"][0]) for detail in error.errors() if detail["loc"])
            raise InfraError.of_node(self._node.name, f"reported unusable facts: {keys}") from error

    def deploy(self, run: str, archive: bytes, sha256: str, *, below: str = "", cached: bool = False) -> None:
        """Install the suite's code and the run's interpreter shims.

        Args:
            below: the suite's root in the archive.
            cached: whether downloads of the suite's scripts are kept in the node's cache.
        """
        remote = paths.suite_archive(self._node, sha256)
        self._put_once(archive, remote)
        self.call(commands.unpack(self._node, run, sha256, below=below), "unpack the suite", timeout=300)
        self.call(commands.make_shims(self._node, run), "create the run's python")
        if cached:
            self.call(commands.make_download_shim(self._node, run), "create the run's wget")

    def put_wheel(self, file: Path, build: FrameworkBuild) -> None:
        """Copy the wheel of a framework build into the node's cache, unless it is there."""
        remote = paths.wheel(self._node, build)

        def put(transport: Transport) -> None:
            if transport.run(commands.has_file(remote, build.sha256), timeout=WHEEL_S).exit_code != 0:
                transport.put(file, remote, timeout=WHEEL_S)

        self.retry_once(put)

    def inherit(
        self, run: str, of: str, sha256: str, *, needs: Sequence[str], without: Sequence[str], below: str = ""
    ) -> None:
        """Use the files that another run of the same code left as the run's root; see commands.inherit."""
        command = commands.inherit(self._node, run, of, sha256, needs=needs, without=without, below=below)
        self.call(command, f"inherit the training of run {of}", timeout=300)

    def start(self, spec: JobSpec) -> dict[str, Any]:
        """Start the job, or find it running or ended; return the runner's response."""
        job = self._job(spec)
        # An existing job is re-attached to: its specification must stay the one it was started with.
        self._put_once(spec.model_dump_json().encode(), f"{job}/job.json", keep=True)
        return self.call_json(commands.start(self._node, job), f"start {spec.step}")

    def go(self, spec: JobSpec) -> None:
        """Let a staged job start its first command."""
        self.call(commands.go(self._node, self._job(spec)), f"continue with {spec.step}")

    def stop(self, spec: JobSpec, reason: str, by: StoppedBy) -> None:
        """Request the end of the job from its runner."""
        self.call(
            commands.stop(self._node, self._job(spec), reason, by), f"stop {spec.step}", patience_s=SHORT_QUERY_S
        )

    def report_peers(self, spec: JobSpec, *, active: bool) -> None:
        """Report to the runner of a silent job whether its peers make progress."""
        self.call(
            commands.report_peers(self._node, self._job(spec), active=active),
            f"report the peers of {spec.step}",
            patience_s=SHORT_QUERY_S,
        )

    def finish(self, spec: JobSpec) -> None:
        """Request the end of the job's parameter servers from its runner."""
        self.call(
            commands.finish(self._node, self._job(spec)),
            f"end the parameter servers of {spec.step}",
            patience_s=SHORT_QUERY_S,
        )

    def poll(self, spec: JobSpec) -> dict[str, Any]:
        """State, heartbeat, exit record and legs of the job."""
        return self.call_json(commands.poll(self._node, self._job(spec)), f"report the state of {spec.step}")

    def watch(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        """Yield the runner's events from the given log offsets until the job ends or `seconds` have passed."""
        command = commands.watch(self._node, self._job(spec), seconds=seconds, resume=resume, files=True)
        return self._events(spec, command, timeout=self._silence_s)

    def begin(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        """Run `start` and `watch` in one command: the runner's response to `start` is the first event.

        The job has been started or found when this returns.
        """
        command = commands.begin(self._node, self._job(spec), seconds=seconds, resume=resume)
        described = spec.model_dump_json().encode()
        _ = self.transport  # an unreachable node is not contacted twice
        try:
            events = self._events(spec, command, input=described, timeout=self._silence_s)
            response = next(events)
        except InfraError:  # connection broken, or another version installed its runner under another name
            self.open_again(self._transport)
            self._put_once(runner_bytes(), paths.runner_path(self._node))
            events = self._events(spec, command, input=described, timeout=self._silence_s)
            response = next(events)
        return itertools.chain((response,), events)

    def _events(
        self,
        spec: JobSpec,
        command: str,
        *,
        timeout: float,
        input: bytes = b"",  # noqa: A002
    ) -> Iterator[dict[str, Any]]:
        has_output = False
        with self.transport.stream(
            command, input=input, timeout=timeout, first=QUERY_S if input else 0.0
        ) as lines:
            for line in lines:
                has_output = True
                yield self._json(line)
        if not has_output:
            raise InfraError(f"no response from node {self._node.name} for {spec.step}", node=self._node.name)

    def evidence(self, spec: JobSpec, seconds: float) -> dict[str, Any]:
        """Return the evidence of a job that may hang, or the evidence that its runner has stored; the job
        continues."""
        command = commands.evidence(self._node, self._job(spec))
        return self._json(self.call(command, f"collect evidence of {spec.step}", timeout=seconds))

    def list_ours(self) -> dict[str, Any]:
        """Return the processes and jobs of the workspace on the node."""
        return self.call_json(commands.list_ours(self._node), "list its processes", patience_s=SHORT_QUERY_S)

    def reap(self, job: JobId | None = None, by: StoppedBy = StoppedBy.CONTROLLER) -> dict[str, Any]:
        """End the processes of `job`, or of all jobs that have ended."""
        return self.call_json(
            commands.reap(self._node, job=str(job or ""), by=by),
            "end leftover processes",
            patience_s=SHORT_QUERY_S,
        )

    def end_stuck(self, spec: JobSpec) -> None:
        """End the processes of a job whose runner is unresponsive, and the runner."""
        self.reap(spec.id)

    def end_helpers(self) -> dict[str, Any]:
        """End tipcflow commands whose controller has ended: past their deadline, or stalled uploads."""
        return self.call_json(commands.reap(self._node, helpers=True), "end leftover commands")

    def unclaim(self, run: str = "") -> dict[str, str]:
        """Release a run's claim; return run -> owner of the remaining claims."""
        response = self.call_json(claims.unclaim(self._node, run), "list its claims", patience_s=SHORT_QUERY_S)
        return {str(claim["run"]): str(claim.get("owner", "")) for claim in response["others"]}

    def remove_run(self, run: str) -> None:
        """Remove the folders of the run."""
        self.call(
            commands.remove_run(self._node, run), "remove the run's folder", timeout=120, patience_s=SHORT_QUERY_S
        )

    def fetch(
        self,
        spec: JobSpec,
        artefacts: Iterable[str] | None,
        local: Path,
        *,
        limit: int,
        sent: InlineFiles = NO_INLINE_FILES,
    ) -> Fetched:
        """Fetch a job's logs and records into `local`, and its artefacts into `local`/files.

        Args:
            artefacts: paths relative to the suite's root; None for a lost job: the files listed by its runner, or
                the logs that show its progress.
            limit: maximum bytes fetched of one file.
            sent: files that were transferred with the job's end.
        """
        logs = [paths.log_file("", command.leg).lstrip("/") for command in spec.commands]
        job = self._folder(self._job(spec), local, limit, sent.job)
        fetched = job.fetch(dict.fromkeys([*JOB_FILES, *logs]))
        fetched.add(job.fetch(_evidence_files(local)))
        own = [posixpath.normpath(command.log) for command in spec.commands if command.log]
        root = self._folder(spec.root, local / "files", limit, sent.root)
        written = self._left(spec, local) if artefacts is None else artefacts
        files = root.fetch(dict.fromkeys([*own, *written]))
        files.notes += changed_since(local, files.listed, node=self._node.name, limit=limit)
        fetched.add(files)
        return fetched

    def _left(self, spec: JobSpec, local: Path) -> list[str]:
        """Return the files that a lost job left in the suite's root, as far as they are known."""
        listed = listed_artefacts(local)
        if listed is not None:
            return listed
        if not (local / "before.json").is_file():
            return []  # it never started
        output = self.call(list_matching(spec.root, spec.progress), "list the logs of a lost job")
        names = [os.fsdecode(name) for name in output.split(b"\0") if name]
        return [name for name in names if not is_secret(name)]

    def _folder(self, root: str, local: Path, limit: int, sent: Mapping[str, bytes | None]) -> FolderFetch:
        return FolderFetch(self.retry_once, node=self._node.name, root=root, local=local, limit=limit, sent=sent)

    def _put_once(self, data: bytes, remote: str, *, keep: bool = False) -> bool:
        """Upload a file unless it exists; return whether it was uploaded.

        Args:
            keep: leave an existing file as it is. Otherwise a file with other content is replaced: it may have
                been truncated, or emptied by a power failure.
        """
        sha256 = "" if keep else hashlib.sha256(data).hexdigest()

        def put(transport: Transport) -> bool:
            if transport.run(commands.has_file(remote, sha256), timeout=QUERY_S).exit_code == 0:
                return False
            transport.put(data, remote)
            return True

        return self.retry_once(put)

    def call(
        self,
        command: str,
        what: str,
        *,
        timeout: float = QUERY_S,
        hint: str = "",
        patience_s: float = float("inf"),
    ) -> bytes:
        """Run a tipcflow command; return its output. A non-zero exit code is an InfraError with the last line."""

        def run(transport: Transport) -> Completed:
            """Run it once. A node that shuts down is an error of its own: its output is incomplete."""
            done = transport.run(command, timeout=timeout)
            if done.exit_code == _SIGNALED:  # a node that shuts down ends all processes before its sshd
                raise InfraError(
                    f"node {self._node.name} could not {what}: ended by a signal", node=self._node.name
                )
            return done

        done = self.retry_once(run, patience_s=patience_s)
        runner = paths.runner_path(self._node)
        silent = done.exit_code != 0 or not done.stdout
        # Missing (another version has installed its own runner) or damaged.
        if silent and runner in command and self._put_once(runner_bytes(), runner):
            done = self.retry_once(run)
        if done.exit_code != 0:
            lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
            reason = lines[-1] if lines else f"exit code {done.exit_code}"
            raise InfraError(
                f"node {self._node.name} could not {what}: {reason}",
                node=self._node.name,
                hint=hint,
                failure_class=FailureClass.ENVIRONMENT if done.exit_code == commands.NO_PYTHON else None,
                output=reason,
            )
        return done.stdout

    def call_json(self, command: str, what: str, *, patience_s: float = float("inf")) -> dict[str, Any]:
        """As `call`, for commands that print one JSON object."""
        return self._json(self.call(command, what, patience_s=patience_s))

    def _json(self, line: bytes) -> dict[str, Any]:
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if not line.strip():
            raise InfraError(f"empty response from node {self._node.name}", node=self._node.name)
        if not isinstance(value, dict):
            text = line[:200].decode(errors="replace")
            raise InfraError(
                f"invalid JSON response from node {self._node.name}: {text!r}",
                node=self._node.name,
                hint="a login script prints to stdout; silence it for non-interactive shells",
            )
        return value

    def _job(self, spec: JobSpec) -> str:
        return paths.job_dir(self._node, spec.run, spec.step, spec.attempt)


def _evidence_files(local: Path) -> list[str]:
    """Return the files that a fetched `evidence.json` names, relative to the job folder."""
    try:
        evidence = json.loads((local / "evidence.json").read_text())
        return [
            str(name) for name in evidence["files"] if str(name).startswith("evidence/") and ".." not in str(name)
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return []
