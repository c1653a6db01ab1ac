"""A real Slurm of several slurmd on this machine: munged, slurmctld and one slurmd for each node.

The nodes share the machine's processes and files, as the nodes of a cluster share a file system: each has a
loopback address, a port and a spool folder of its own. The last two have the feature `a`.
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from tests.support.certify import TIPCFLOW, Site, wait_for
from tests.support.sshd import Server, start_sshd

from tipcflow.domain import Run
from tipcflow.domain.run.failure import Failure, FailureClass
from tipcflow.domain.run_documents import FailuresDocument
from tipcflow.remote.slurm.commands import UNUSED_S

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "squeue", "scontrol", "scancel")
PORT = 17000
# Short, so that tests of lost nodes are; the defaults are 300 and 30.
SLURMD_TIMEOUT_S, KILL_WAIT_S = 10, 5

_CONF = """
ClusterName=tipcflow
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmctldPort={port}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=bf_interval=2,sched_min_interval=100000
SlurmdTimeout={slurmd_timeout}
KillWait={kill_wait}
MinJobAge=120
ReturnToService=2
SlurmdParameters=config_overrides
{accounting}
JobAcctGatherType=jobacct_gather/none
{nodes}
PartitionName=ci Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing_programs() -> list[str]:
    """Return the programs of Slurm that are not installed."""
    places = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return [name for name in PROGRAMS if not shutil.which(name, path=places)]


def missing() -> str:
    """Return what this machine lacks for a Slurm of its own, '' if nothing."""
    if os.geteuid() != 0:
        return "not root"
    absent = missing_programs()
    return f"not installed: {', '.join(absent)} (Debian: slurmctld slurmd slurm-client munge)" if absent else ""


class LocalSlurm:
    """A running Slurm; a context manager that ends it.

    Attributes:
        accounting: settings of its accounting.
    """

    accounting = "AccountingStorageType=accounting_storage/none"

    def __init__(
        self, folder: Path, *, names: tuple[str, ...] = ("n1", "n2", "n3", "n4"), port: int = PORT
    ) -> None:
        self.folder, self.names, self.port = folder, names, port
        self.conf = folder / "slurm.conf"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def env(self) -> dict[str, str]:
        """The environment of Slurm's commands."""
        path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
        return {**os.environ, "PATH": path, "SLURM_CONF": str(self.conf)}

    def __enter__(self) -> "LocalSlurm":
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "state").mkdir()
        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        host = socket.gethostname().split(".")[0]
        nodes = "\n".join(
            f"NodeName={name} NodeHostname={host} NodeAddr={self.address(name)} Port={self.port + number} CPUs=2 "
            f"State=UNKNOWN{' Feature=a' if name in self.names[-2:] else ''}"
            for number, name in enumerate(self.names, 1)
        )
        self.conf.write_text(
            _CONF.format(
                host=host,
                folder=self.folder,
                port=self.port,
                nodes=nodes,
                accounting=self.accounting,
                slurmd_timeout=SLURMD_TIMEOUT_S,
                kill_wait=KILL_WAIT_S,
            )
        )
        try:
            self._start_all(key)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in ["slurmctld", *self.names, "munged"]:
            self.stop(name)

    def address(self, name: str) -> str:
        """Return the loopback address of a node."""
        return f"127.0.0.{10 + self.names.index(name) + 1}"

    def start(self, name: str) -> None:
        """Start `slurmctld`, or the slurmd of a node."""
        words = ["slurmctld", "-D"] if name == "slurmctld" else ["slurmd", "-D", "-N", name]
        self._spawn(name, [*words, "-f", str(self.conf)])

    def stop(self, name: str, number: signal.Signals = signal.SIGTERM) -> None:
        """End a daemon."""
        process = self._processes.pop(name, None)
        if process is None or process.poll() is not None:
            return
        process.send_signal(number)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)

    def run(self, *words: str, check: bool = True) -> str:
        """Return the output of a command of Slurm."""
        done = subprocess.run(words, env=self.env, capture_output=True, text=True, timeout=60, check=False)
        assert not check or done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def jobs(self) -> dict[str, str]:
        """Return ID -> state of the jobs that wait or run."""
        lines = self.run("squeue", "--noheader", "--format=%i %T").split("\n")
        return dict(line.split() for line in lines if line.strip())

    def processes(self) -> list[str]:
        """Return the command lines of the processes of jobs, and of their starters, on all nodes."""
        marks = (f"{self.folder}/work/", "train.py", "Starter of an allocation")
        lines = subprocess.check_output(["ps", "-eo", "args"], text=True).splitlines()
        return [line for line in lines if any(mark in line for mark in marks)]

    def await_idle(self) -> None:
        """Wait until all nodes are free."""
        wait_for(
            lambda: set(self.run("sinfo", "-h", "-N", "-o", "%T").split()) == {"idle"}, what="idle nodes of Slurm"
        )

    def cancel_all(self) -> None:
        """End all jobs, as an administrator does."""
        for job in self.jobs():
            self.run("scancel", job)

    @contextmanager
    def login_node(self, folder: Path) -> Iterator[Server]:
        """Run an sshd whose sessions have Slurm's commands, after the programs in the folder's `bin`, if any."""
        path = f"{folder / 'bin'}:{self.env['PATH']}"
        # With SHLVL, bash does not read the start-up file of the user, which may change PATH and take a while.
        server = start_sshd(folder, f"SetEnv SLURM_CONF={self.conf} PATH={path} SHLVL=2")
        try:
            yield server
        finally:
            server.close()

    @contextmanager
    def occupied(self) -> Iterator[None]:
        """Keep all nodes in use by another job."""
        words = ["sbatch", "--parsable", f"--nodes={len(self.names)}", "--exclusive", "--output=/dev/null"]
        job = self.run(*words, "--job-name=other", "--time=60", "--wrap=sleep 1000").strip()
        wait_for(lambda: self.jobs().get(job) == "RUNNING", what="the other job")
        try:
            yield
        finally:
            self.run("scancel", job)

    def kill_node(self, name: str) -> None:
        """End a node's slurmd, its steps and their processes, as a power failure does."""
        self.stop(name, signal.SIGKILL)
        own = (f"TEST_SLURMD={name}", f"SLURMD_NODENAME={name}", f"TIPCFLOW_NODE={name}")
        for pid in _pids():
            if set(own) & set(_variables(pid)) and pid != os.getpid():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def kill_daemon(self, name: str) -> None:
        """Kill slurmctld, or the slurmd of a node; its steps keep running."""
        self.stop(name, signal.SIGKILL)

    def kill_starter(self, name: str) -> None:
        """Kill slurmstepd of the step in which jobs are started on a node."""
        steps = [
            pid
            for pid in _pids()
            if re.fullmatch(r"slurmstepd: \[\d+\.0\]", _read(pid, "cmdline").strip("\0 "))
            and f"TEST_SLURMD={name}" in _variables(pid)
        ]
        assert steps, "no step"
        for pid in steps:
            os.kill(pid, signal.SIGKILL)

    def set_partition(self, state: str) -> None:
        """Set the state of the partition, as an administrator does."""
        self.run("scontrol", "update", "partitionname=ci", f"state={state}")

    @contextmanager
    def full_queue(self) -> Iterator[None]:
        """Restart slurmctld with as many jobs as it accepts: ended ones count until they are purged."""
        text = self.conf.read_text()
        known = len(self.run("squeue", "--states=all", "--noheader", "--format=%i").split())
        self._restart_with(f"{text}MaxJobCount={known}\n".replace("MinJobAge=120", "MinJobAge=0"))
        try:
            yield
        finally:
            self._restart_with(text)

    def _restart_with(self, conf: str) -> None:
        self.conf.write_text(conf)
        self.stop("slurmctld")
        self.start("slurmctld")
        wait_for(lambda: "UP" in self.run("scontrol", "ping", check=False), what="slurmctld")

    def recover(self) -> None:
        """End all jobs, start the daemons that were stopped, and wait until all nodes are free."""
        for name in ("slurmctld", *self.names):
            if name not in self._processes or self._processes[name].poll() is not None:
                self.start(name)
        wait_for(lambda: "UP" in self.run("scontrol", "ping", check=False), what="slurmctld")
        self.set_partition("UP")
        self.cancel_all()
        self.await_idle()

    def write_cluster_file(self, path: Path, **changes: object) -> Path:
        """Write a cluster file whose nodes come from this Slurm; workspaces are in its folder."""
        content = {
            "name": path.stem,
            "kind": "slurm",
            "login": {"local": True},
            "partition": "ci",
            "nodes": len(self.names),
            "time_limit_minutes": 30,
            "node": {"python": sys.executable, "workspace": f"{self.folder}/work/{{node}}", "slots": 2},
            **changes,
        }
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return path

    def _start_all(self, key: Path) -> None:
        words = ["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.socket"]
        words += [f"--{name}-file={self.folder}/munged.{name}" for name in ("pid", "log", "seed")]
        self._spawn("munged", words)
        wait_for((self.folder / "munge.socket").exists, what="munged")
        self._start_accounting()
        for name in ("slurmctld", *self.names):
            self.start(name)
        deadline = time.monotonic() + 60
        while {"idle"} != set(self.run("sinfo", "-h", "-N", "-o", "%T", check=False).split()):
            assert time.monotonic() < deadline, (self.folder / "slurmctld.log").read_text()[-4000:]
            time.sleep(0.2)

    def _start_accounting(self) -> None:
        """Start what slurmctld needs for its accounting."""

    def _spawn(self, name: str, words: list[str]) -> None:
        log = (self.folder / f"{name}.out").open("ab")
        with log:
            # slurmstepd inherits the mark: it is how `kill_node` finds those of one node.
            env = {**self.env, "TEST_SLURMD": name}
            self._processes[name] = subprocess.Popen(
                words, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )


class SlurmSite(Site):
    """A user's installation on the login node of this Slurm."""

    def __init__(self, folder: Path, slurm: LocalSlurm) -> None:
        super().__init__(folder, slurm)
        self.slurm = slurm
        # Searched for programs first; '' for none.
        self.first = ""

    @property
    def env(self) -> dict[str, str]:
        """The environment of every command."""
        path = ":".join(filter(None, (self.first, self.slurm.env["PATH"])))
        return {**super().env, "SLURM_CONF": str(self.slurm.conf), "PATH": path}

    def configure_cluster(self, **settings: object) -> None:
        """Change keys of the cluster file."""
        self.slurm.write_cluster_file(self.cluster_file, **settings)

    def log_in_by(self, login: Server, *, connection: str = "") -> None:
        """Reach Slurm's commands by that sshd; in Airflow by a connection of that ID."""
        ssh = login.node().ssh.model_dump(exclude_defaults=True)
        self.configure_cluster(login={"ssh": ssh, **({"connection": connection} if connection else {})})

    def training(self) -> bool:
        """Whether a worker of the toy suite's training is running."""
        return any("train.py" in line and "srun" not in line for line in self.slurm.processes())

    def environment_of_training(self) -> set[str]:
        """Return the names of the environment variables of a worker of the training."""
        worker = next(pid for pid in _pids() if "train.py" in _read(pid, "cmdline") and _is_job(pid))
        return {item.partition("=")[0] for item in _variables(worker)}

    def replace_program(self, folder: Path, name: str, script: str) -> None:
        """Put a shell script before one of Slurm's programs; `$REAL` is the program."""
        folder.mkdir(exist_ok=True)
        real = shutil.which(name, path=self.env["PATH"])
        (folder / name).write_text(f"#!/bin/sh\nREAL={real}\n{script}\n")
        (folder / name).chmod(0o755)
        self.first = str(folder)

    def leave_first_unused(self, folder: Path, *, until_ended: bool) -> None:
        """Let the starters of the next allocation end at once, as if no controller had contacted them in time.

        Args:
            folder: as in `replace_program`.
            until_ended: whether `sbatch` ends after the allocation.
        """
        once, short = folder / "once", f"sed 's/serve({UNUSED_S})/serve(0)/'"
        lines = [
            f'[ ! -e {once} ] || exec "$REAL" "$@"',
            f'touch {once}; job=$({short} | "$REAL" "$@") || exit',
        ]
        wait = 'while [ -n "$(squeue --noheader --jobs="$job" --states=PENDING,RUNNING)" ]; do sleep 0.2; done'
        lines += [wait] if until_ended else []
        self.replace_program(folder, "sbatch", "\n".join([*lines, 'echo "$job"']))

    def classes(self, run: Run) -> set[FailureClass]:
        """Return the failure classes of a run's attempts."""
        return {failure.failure_class for failure in self.failures(run)}

    def failures(self, run: Run) -> list[Failure]:
        """Return the failures of a run's attempts."""
        with self.store() as store:
            stored = store.documents.get(run.id, FailuresDocument) or FailuresDocument()
            return list(stored.of(store.attempts.of(run.id)).values())

    def reap(self) -> str:
        """Return what `tipcflow nodes reap` prints."""
        words = [str(TIPCFLOW), "nodes", "reap", "--cluster", "local"]
        done = subprocess.run(words, env=self.env, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def left_behind(self) -> list[str]:
        """Remaining processes of jobs, and allocations; empty after a clean end."""
        return [*self.slurm.processes(), *(f"job {job} is {state}" for job, state in self.slurm.jobs().items())]


def _read(pid: int, name: str) -> str:
    """Return a file of a process; '' after its end."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _variables(pid: int) -> list[str]:
    """Return the environment of a process as `NAME=value`."""
    return [item for item in _read(pid, "environ").split("\0") if item]


def _is_job(pid: int) -> bool:
    return any(item.startswith("TIPCFLOW_JOB=") for item in _variables(pid))
