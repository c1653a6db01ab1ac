"""Slurm's commands on the login node, with a deadline each: what a run needs of an allocation."""

import time
from collections.abc import Callable, Sequence

from tipcflow.domain import Cluster, ConfigError, InfraError, Node, SlurmStep, SshTarget
from tipcflow.domain.numbers.units import utc_minute
from tipcflow.domain.run.allocation_wait import SlurmPlace
from tipcflow.execute.node.link import Connect
from tipcflow.remote.slurm import commands
from tipcflow.remote.slurm.output import (
    OLDEST,
    SlurmJob,
    SlurmNode,
    active_jobs_in,
    is_too_old,
    jobs_in,
    key_of,
    may_pass,
    nodes_in,
    position_in,
    submitted_job,
    version_in,
)
from tipcflow.transport import Completed, Transport

# A command's own deadline on the login node ends it first; its end is awaited this much longer.
LONGER_S = 15.0
# How long sbatch may report a submission as failed before the job appears.
APPEARS_S = 5.0
POLL_S = 1.0
LOGIN = "login"


def login_node(cluster: Cluster) -> Node:
    """Return the login node of a Slurm cluster, as a node that runs commands outside of allocations."""
    first = cluster.nodes[0]
    local = cluster.slurm is not None and cluster.slurm.local
    return first.model_copy(
        update={"name": LOGIN, "address": _host(first.ssh), "slurm": SlurmStep(login=True, local=local)}
    )


def _host(ssh: SshTarget) -> str:
    return ssh.host or ssh.alias or "login"


class SlurmClient:
    """Slurm's commands for one cluster; a context manager that closes its connection. Methods raise InfraError."""

    def __init__(self, cluster: Cluster, connect: Connect) -> None:
        self._cluster = cluster
        self._connect = connect
        self._transport: Transport | None = None

    def __enter__(self) -> "SlurmClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next command opens a new one."""
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def version(self) -> str:
        """Return the version of Slurm's programs on the login node; '' if it is unknown.

        Raises:
            ConfigError: tipcflow does not support it.
        """
        done = self._run(commands.version(), timeout=commands.QUERY_S + LONGER_S)
        version = version_in(done.stdout.decode(errors="replace"))
        if is_too_old(version):
            message, expected = "Slurm on the login node is too old", f"{OLDEST} or newer"
            raise ConfigError(message, file=self._cluster.name, key="login", found=version, expected=expected)
        return version

    def find(self, name: str) -> list[SlurmJob]:
        """Return the user's jobs of that name, in the order of their submission, with ended ones that slurmctld
        knows."""
        return jobs_in(self._text(commands.find(name), "list its jobs"), name)

    def own(self) -> list[SlurmJob]:
        """Return the user's jobs that wait or run, in the order of their submission."""
        return active_jobs_in(self._text(commands.own(), "list the user's jobs"))

    def submit(self, name: str, *, nodes: int, nodelist: Sequence[str] = ()) -> str:
        """Submit the request for an allocation, once; return its ID.

        If sbatch fails, the job is looked up by its name, because sbatch may time out after Slurm has accepted it.

        Raises:
            ConfigError: Slurm refuses a value of the cluster file.
            InfraError: Slurm refuses the request for another reason, or cannot be reached; `passing`: retry later.
        """
        script = commands.batch_script(self._cluster).encode()
        command = commands.submit(self._cluster, name=name, nodes=nodes, nodelist=nodelist)
        message = ""
        try:
            done = self._run(command, timeout=commands.SUBMIT_S + LONGER_S, script=script)
            job = submitted_job(done.stdout.decode(errors="replace"))
            if done.exit_code == 0 and job:
                return job
            message = _reason(done)
            passing = may_pass(message) or done.exit_code in _TIMED_OUT
        except InfraError as error:
            message, passing = error.message, True
            self.close()
        if passing:
            return self._appeared(name, message)
        if key := key_of(message):
            refused = nodes if key == "nodes" else getattr(self._cluster.slurm, key)
            refusal = f"Slurm refuses the request: {message}"
            raise ConfigError(refusal, file=self._cluster.name, key=key, found=str(refused))
        raise InfraError(f"Slurm refuses the request: {message}")

    def _appeared(self, name: str, message: str) -> str:
        """Return the job of a submission that was reported as failed."""
        deadline = time.monotonic() + APPEARS_S
        while True:
            active = [job for job in self.find(name) if job.is_active]
            if active:
                return active[0].id
            if time.monotonic() > deadline:
                raise InfraError(f"Slurm did not accept the request: {message}", passing=True)
            time.sleep(POLL_S)

    def place(self, job: SlurmJob) -> SlurmPlace:
        """Return the place of a waiting job in the queue of the partition."""
        return place_of(self._cluster, job, self._text(commands.pending(self._cluster), "list its queue"))

    def nodes(self, nodelist: str) -> list[SlurmNode]:
        """Return the nodes of an allocation."""
        return nodes_in(self._text(commands.nodes(nodelist), "list the nodes of an allocation"))

    def running(self, node: Node) -> SlurmJob | None:
        """Return the running allocation of a node; None if it has ended."""
        done = self._run(commands.state(node), timeout=commands.QUERY_S + LONGER_S)
        jobs = jobs_in(done.stdout.decode(errors="replace"), node.slurm.name if node.slurm else "")
        return next((job for job in jobs if job.is_running), None)

    def contact(self, nodes: Sequence[Node]) -> str:
        """Contact the starters of an allocation's nodes; return why one did not respond, '' if all did."""
        done = self._run(commands.contact(nodes), timeout=commands.CONTACT_S + LONGER_S)
        why = _reason(done) if done.exit_code else ""
        if "slurm controller" in why.lower():
            raise InfraError(f"Slurm could not contact the nodes of an allocation: {why}", passing=True)
        return why

    def cancel(self, name: str) -> None:
        """End the user's jobs of that name."""
        self._text(commands.cancel(name), "cancel an allocation")

    def cancel_job(self, job: str) -> None:
        """End one job."""
        self._text(commands.cancel_job(job), "cancel a job")

    def _text(self, command: str, what: str) -> str:
        done = self._run(command, timeout=commands.QUERY_S + LONGER_S)
        if done.exit_code:
            raise InfraError(f"Slurm could not {what}: {_reason(done)}", passing=True)
        return done.stdout.decode(errors="replace")

    def _run(self, command: str, *, timeout: float, script: bytes = b"") -> Completed:
        def run(transport: Transport) -> Completed:
            return transport.run(command, input=script, timeout=timeout)

        return self._with_transport(run, again=not script)

    def _with_transport(self, do: Callable[[Transport], Completed], *, again: bool) -> Completed:
        """Run an operation over the connection, and again over a new one if it broke."""
        if self._transport is not None and again:
            try:
                return do(self._transport)
            except InfraError:
                self.close()
        if self._transport is None:
            self._transport = self._connect(login_node(self._cluster))
        return do(self._transport)


def place_of(cluster: Cluster, job: SlurmJob, pending: str) -> SlurmPlace:
    """Return the place of a waiting job; `pending` is what `commands.pending` printed."""
    position, count = position_in(pending, job.id)
    return SlurmPlace(
        job=job.id,
        partition=cluster.slurm.partition if cluster.slurm else "",
        position=position,
        pending=count,
        reason="" if job.reason == "None" else job.reason,
        starts=job.starts,
    )


def waiting_message(place: SlurmPlace) -> str:
    """Return one line about a job in Slurm's queue."""
    words = [f"waiting for Slurm job {place.job}"]
    if place.position:
        partition = f" in partition {place.partition}" if place.partition else ""
        words.append(f"position {place.position} of {place.pending}{partition}")
    if place.reason:
        words.append(f"reason {place.reason}")
    if place.starts is not None:
        words.append(f"expected start {utc_minute(place.starts)}")
    return ", ".join(words)


# Exit codes of `timeout`.
_TIMED_OUT = (124, 137)
_SBATCH = "sbatch: error: "


def _reason(done: Completed) -> str:
    """Return all errors of sbatch in one line: the last one alone lacks the limit; else the last message."""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    if not lines:
        return "no response in time" if done.exit_code in _TIMED_OUT else f"exit code {done.exit_code}"
    errors = [line.removeprefix(_SBATCH) for line in lines if line.startswith(_SBATCH)] or lines[-1:]
    return "; ".join(line.removeprefix("Batch job submission failed: ") for line in errors)
