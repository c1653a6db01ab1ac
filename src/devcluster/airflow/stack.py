"""Supervised Airflow on this machine: api-server, scheduler, dag-processor and triggerer.

Used by the demo, the tests and the benchmarks. All processes end with their owner, also after an exception,
Ctrl-C, SIGTERM or SIGKILL, because a supervisor process detects the owner's end. `airflow standalone` leaves
processes behind.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from devcluster.airflow import state as states
from devcluster.airflow.environment import LOOPBACK, SQL_ALCHEMY_CONN, Folders, environment
from devcluster.airflow.health import free_port, unhealthy
from devcluster.airflow.home import USER, airflow_home
from devcluster.airflow.migration import airflow_version, is_migrated, note_migrated
from devcluster.airflow.supervisor_client import Job, SupervisorClient
from devcluster.local_nodes.processes import start_time
from devcluster.signals import interrupt_guard
from tipcflow.domain import InfraError
from tipcflow.domain.numbers.units import limit, rough

COMPONENTS = ("api-server", "scheduler", "dag-processor", "triggerer")
READY_DEADLINE_S = 300.0
_POLL_S = 0.2
_TELL_EVERY_S = 15.0
_LOG_LINES = 15
# Logs are on this machine's disk: serving them over HTTP is not needed.
_ARGUMENTS = {
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "triggerer": ("triggerer", "--skip-serve-logs"),
    "worker": ("celery", "worker", "--skip-serve-logs", "--without-gossip", "--without-mingle"),
}


def _discard(_message: str) -> None:
    pass


@contextmanager
def airflow_stack(
    home: Path,
    *,
    dags: Path,
    plugins: Path | None = None,
    configs: Path,
    env: Mapping[str, str] | None = None,
    connections: Mapping[str, str] | None = None,
    components: Sequence[str] = COMPONENTS,
    port: int = 0,
    report: Callable[[str], None] = _discard,
) -> Iterator["Stack"]:
    """Run a healthy Airflow for the duration of the `with` block.

    Args:
        home: TIPCFLOW_HOME; AIRFLOW_HOME is its persistent subfolder `airflow`.
        dags: the DAGs folder.
        plugins: the plugins folder; None for none.
        configs: TIPCFLOW_CONFIG_DIR; its `airflow.env` contains the settings.
        env: additional environment of every component; overrides the settings (another database, executor, …).
        connections: `AIRFLOW_CONN_<ID>` to JSON, as returned by `connections_env`.
        components: components to start; in addition to the four, `worker` is available for the CeleryExecutor.
        port: port of the UI and API if it is free; otherwise, and for 0, any free port.
        report: receives progress messages, one line each.

    Raises:
        InfraError: a component ended or was not healthy within the deadline (with the last lines of its log), or
            another process runs the Airflow of this home.
        ConfigError: the settings file is invalid.
        Interrupted: Ctrl-C or SIGTERM was received; all processes are ended first.
    """
    with starting_airflow(
        home, dags=dags, plugins=plugins, configs=configs, env=env, port=port, report=report
    ) as stack:
        stack.start(connections or {}, components=components)
        stack.wait_ready()
        yield stack


@contextmanager
def starting_airflow(
    home: Path,
    *,
    dags: Path,
    plugins: Path | None = None,
    configs: Path,
    env: Mapping[str, str] | None = None,
    port: int = 0,
    report: Callable[[str], None] = _discard,
) -> Iterator["Stack"]:
    """Like `airflow_stack`, but only start the database migration; `start` starts the components.

    For callers with parallel preparation, such as the nodes of the connections.
    """
    stack: Stack | None = None
    with interrupt_guard.installed():
        try:
            with interrupt_guard.hold():
                stack = Stack(home, Folders(dags, plugins, configs), env=env or {}, port=port, report=report)
            yield stack
        finally:
            # A signal raises at most once: if it arrives here before the hold, the outer block still closes.
            try:
                _close(stack)
            finally:
                _close(stack)


def _close(stack: "Stack | None") -> None:
    if stack is not None:
        stack.close()


class Stack:
    """A running Airflow. Prefer `airflow_stack`, which also handles signals.

    The constructor starts the database migration, so that the caller can prepare other things in parallel; then
    call `start` and `wait_ready`.

    Attributes:
        url: of the UI and the API, without a trailing slash.
        user: login name of the administrator.
        password: the user's password; show it only on a terminal.
        airflow_home: AIRFLOW_HOME.
        passwords_file: file of the password, mode 0600.
        folders: folders that Airflow reads.
        components: log file of each component, by name.
        since: Unix time of the start or last restart.
    """

    def __init__(
        self,
        home: Path,
        folders: Folders,
        *,
        env: Mapping[str, str],
        port: int = 0,
        report: Callable[[str], None] = _discard,
    ) -> None:
        airflow_version()
        self._owner, self.since = os.getpid(), time.time()
        self._report = report
        self._airflow = airflow_home(home / "airflow")
        self.airflow_home = self._airflow.folder
        self.user, self.password = USER, self._airflow.password
        self.passwords_file = self._airflow.passwords_file
        self.folders = folders
        self.components: dict[str, Path] = {}
        self._connections: dict[str, str] = {}
        self._supervisor: SupervisorClient | None = None
        self._ownership = states.Ownership(self.airflow_home)
        try:
            states.remove_leftovers(self.airflow_home, report)
            port = free_port(port)
            self.url = f"http://{LOOPBACK}:{port}"
            self._env = environment(self._airflow, folders, home=home, port=port, more=env)
            self._state = states.new_state(self.url)
            self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        """Start the supervisor, and the migration under it."""
        key, _, value = self._state.marker.partition("=")
        self._state.save(self.airflow_home)
        self._supervisor = SupervisorClient({**self._env, key: value}, self._log_of("supervisor"))
        self._state.keeper = (self._supervisor.pid, start_time(self._supervisor.pid))
        self._state.save(self.airflow_home)
        migrated = is_migrated(self._airflow, self._env)
        if not migrated:
            self._report("creating Airflow's database")
        self._supervisor.first(None if migrated else self._job("migration", "db", "migrate"))

    def start(self, connections: Mapping[str, str], *, components: Sequence[str] = COMPONENTS) -> None:
        """Request the start of the components once the database is ready; do not wait."""
        self._connections = dict(connections)
        self.components = {name: self._log_of(name) for name in components}
        self._start(components)

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Send a component a signal, and wait until it has ended; `check` then raises InfraError.

        Raises:
            InfraError: the component does not end.
        """
        self._running().kill(name, number)

    def restart(self, name: str) -> None:
        """Restart an ended component; `wait_ready` waits for it."""
        self.since = time.time()
        self._start([name])

    @property
    def pids(self) -> dict[str, int]:
        """Return the process ids of the started components."""
        return dict(self._running().pids)

    def _start(self, names: Sequence[str]) -> None:
        self._running().start(
            self._connections, [self._job(name, *_ARGUMENTS.get(name, (name,))) for name in names]
        )

    def _running(self) -> SupervisorClient:
        if self._supervisor is None:
            raise InfraError("this Airflow was closed")
        return self._supervisor

    def wait_ready(self, *, deadline_s: float = READY_DEADLINE_S) -> None:
        """Wait until all components are healthy.

        Raises:
            InfraError: a component ended, or is not healthy within the deadline.
            Interrupted: a signal was received.
        """
        begun = reported_at = time.monotonic()
        names = tuple(self.components)
        self._report(f"starting Airflow ({', '.join(names)})")
        while waiting := unhealthy(self.url, names, self.since):
            interrupt_guard.check()
            self.check()
            now = time.monotonic()
            if now - begun > deadline_s:
                raise InfraError(
                    f"Airflow was not up after {limit(deadline_s)}; missing: {', '.join(waiting)}\n"
                    + self._tail(waiting[0]),
                    hint=f"all logs are in {self._airflow.logs}",
                )
            if now - reported_at >= _TELL_EVERY_S:
                reported_at = now
                self._report(f"still waiting for Airflow's {', '.join(waiting)} ({rough(now - begun)})")
            time.sleep(_POLL_S)
        self.check()
        if not is_migrated(self._airflow, self._env):
            note_migrated(self._airflow)

    def check(self) -> None:
        """Check that all started processes are running.

        Raises:
            InfraError: a process ended; with its exit code and the last lines of its log.
        """
        supervisor = self._running()
        for name, code in list(supervisor.ended.items()):
            if name != "migration" or code:
                what = "database migration" if name == "migration" else name
                raise InfraError(
                    f"Airflow's {what} ended with exit code {code}\n{self._tail(name)}",
                    hint=f"all logs are in {self._airflow.logs}",
                )
        if supervisor.has_ended:
            raise InfraError("the supervisor of Airflow ended", hint=f"see {self._log_of('supervisor')}")

    def close(self) -> None:
        """End all processes. Idempotent; signals are deferred until the end.

        Raises:
            InfraError: a process does not end; the next start retries.
        """
        # A forked child must not end its parent's processes.
        if os.getpid() != self._owner:
            return
        with interrupt_guard.hold():
            if self._supervisor is not None:
                self._supervisor.close()
                states.kill_marked(self._state)
                (self.airflow_home / "stack.json").unlink(missing_ok=True)
                self._supervisor = None
            self._ownership.release()

    def _job(self, name: str, *arguments: str) -> Job:
        log = self._log_of(name)
        # One log per start, because lines of the previous start would be attributed to this one.
        log.unlink(missing_ok=True)
        env = {}
        if name == "api-server" and self._env[SQL_ALCHEMY_CONN] == self._airflow.database_url:
            env[SQL_ALCHEMY_CONN] = self._airflow.impatient_url
        argv = [sys.executable, "-P", "-m", "airflow", *arguments]
        return {"name": name, "argv": argv, "log": str(log), "env": env}

    def _log_of(self, name: str) -> Path:
        return self._airflow.logs / f"{name}.log"

    def _tail(self, name: str) -> str:
        path = self._log_of(name)
        try:
            lines = path.read_text(errors="replace").splitlines()[-_LOG_LINES:]
        except OSError:
            lines = []
        return f"last lines of {path}:\n" + ("\n".join(f"  {line}" for line in lines) or "  (empty)")
