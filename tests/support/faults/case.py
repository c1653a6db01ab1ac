"""One fault in a run of the CLI: the run, the fault, and what is checked afterwards."""

import signal
import subprocess
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.support.certify import TIPCFLOW, Site, wait_for
from tests.support.faults.fault import CLEAN_S, Door, Fault, Seen
from tests.support.faults.gate import Gate
from tests.support.faults.ledger import stored_once
from tests.support.faults.recorded import recorded_failure
from tests.support.faults.running import Running
from tests.support.faults.watch import Watch

from devcluster.local_nodes.nodes import LocalNodes, local_nodes
from tipcflow.domain import Run
from tipcflow.domain.run.failure import FailureClass

# No retries, and waiting at a gate does not count as a hang; scenarios for retries and hangs override both.
STRICT: dict[str, Any] = {"retries": {one.value: 0 for one in FailureClass}, "hang_s": 0}


class Case:
    """What a scenario works with.

    Attributes:
        door: the front door of its runs.
        short_budget: minutes that end during a training.
        node_lease_s: seconds for which a node waits for a controller, where a scenario sets it.
        lease_expires: whether the lease of a run expires a few seconds after the end of its controller.
        site: with the nodes a and b that all cases share, until `nodes_of_its_own` is called.
        fault_at: when the fault was made, seconds since the epoch.
        noticed_at: when it was noticed, where no job's folder shows that.
        away: nodes that were unreachable when the run ended; they are not queried.
    """

    door: Door = "cli"
    short_budget = 0.15
    node_lease_s = 8.0
    lease_expires = True

    def __init__(self, folder: Path, nodes: LocalNodes, stack: ExitStack) -> None:
        self.folder = folder
        self.stack = stack
        self.site = Site(folder / "site", nodes)
        self.site.configure_policy(**STRICT)
        self.fault_at = 0.0
        self.noticed_at: float | None = None
        self.away: set[str] = set()
        self.run: Run | None = None
        self.text = ""
        self._watch: Watch | None = None
        self.began = time.monotonic()

    def nodes_of_its_own(self, **settings: Any) -> LocalNodes:
        """Other nodes than the shared ones, for a scenario that changes them or needs more; removed afterwards."""
        nodes = self.stack.enter_context(local_nodes(self.folder / "nodes", **settings))
        self.site = Site(self.folder / "own_site", nodes, database_url=self.site.database_url)
        self.site.configure_policy(**STRICT)
        return nodes

    @property
    def nodes(self) -> LocalNodes:
        return self.site.nodes

    def gate(self, **settings: Any) -> Gate:
        """A gate in the training."""
        return Gate(self.site, self.folder, **settings)

    def start(self, *extra: str, site: Site | None = None, **options: str) -> Any:
        """Start a run; a Running, or an AirflowRunning."""
        self.watch()
        running = Running(site or self.site, *extra, **options)
        self.stack.callback(running.kill)
        return running

    def watch(self) -> None:
        """Watch the nodes from now on."""
        if self._watch is None:
            self._watch = Watch(self.nodes)
            self.stack.callback(self._watch.end)

    def now(self) -> None:
        """The fault is made now."""
        self.fault_at = time.time()

    @contextmanager
    def cut(self, name: str) -> Iterator[None]:
        """The node is unreachable inside the block."""
        self.nodes.cut(name)
        if self._watch is not None:
            self._watch.unseen.add(name)
        try:
            yield
        finally:
            self.nodes.restore(name)

    def lost(self, running: Any) -> None:
        """Wait until the controller has noticed that node b's connection is lost."""
        running.wait_said("node b: connection lost")

    def reconnected(self, running: Any) -> None:
        """Wait until the controller has connected to node b again."""
        running.wait_said("node b: reconnected")

    def offer_clusters(self, names: Collection[str]) -> None:
        """Make new cluster files known; the CLI reads them when a run starts."""

    def waits_for_slots(self, running: Any) -> None:
        """Wait until a run waits for the slots of another one."""
        running.wait_said("waiting", seconds=240)

    def start_changed(self) -> Any:
        """Start a run of a params file whose variants the scenario has changed."""
        return self.start()

    def cancel(self, running: Any) -> None:
        """A user stops the run: the fault is made now."""
        self.now()
        running.process.send_signal(signal.SIGINT)

    def kill_controller(self, running: Any) -> None:
        """SIGKILL every process of the controller; it stays away until the end of the scenario."""
        self.now()
        running.kill()

    def use_database(self, url: str) -> None:
        """Use another metrics database from now on."""
        self.site.database_url = url

    def printed(self, running: Any) -> str:
        """Everything that users can read of a run."""
        return str(running.output)

    def end(self, running: Any, *, seconds: float = 120) -> None:
        """Wait for a run's end; this run is the one under judgment."""
        running.end(seconds)
        with self.site.store() as store:
            self.run = store.runs.get(running.id)
        self.text = running.output

    def reap(self) -> str:
        """Run `tipcflow nodes reap`; return its output."""
        command = [str(TIPCFLOW), "nodes", "--cluster", "local", "reap"]
        done = subprocess.run(command, env=self.site.env, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def judge(self, fault: Fault) -> Seen:
        """What became of it, and what is wrong with that."""
        assert self.run is not None, "the scenario ended no run"
        assert self._watch is not None
        wrong = [] if self.run.status is fault.status else [f"{self.run.status}: {self.run.reason}"]
        report = recorded_failure(self.site, self.run)
        if fault.failure and report.failure != fault.failure:
            wrong.append(f"class {report.failure!r} instead of {fault.failure!r}: {self.run.reason}")
        if fault.root_cause and fault.root_cause not in report.root_cause:
            wrong.append(f"{fault.root_cause} is not the root cause in: {self.run.reason}")
        noticed = self.noticed_at or self._watch.noticed(self.fault_at) if fault.detect_s else None
        if fault.detect_s and noticed is None:
            wrong.append("nothing shows that it was noticed")
        left = self._left(noticed or time.time())
        wrong += [f"left after {CLEAN_S:.0f} s: {what}" for what in left]
        wrong += self._leases() + stored_once(self.site, self.run)
        detect = max(0.0, noticed - self.fault_at) if noticed else None
        if detect is not None and detect > fault.detect_s:
            wrong.append(f"noticed only after {detect:.0f} s")
        clean = next((at - noticed for at in self._watch.empty if at >= noticed), None) if noticed else None
        return Seen(
            str(self.run.status), report.failure, report.root_cause, detect, clean, self.seconds, "; ".join(wrong)
        )

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def _left(self, noticed: float) -> list[str]:
        """Processes on nodes that can be reached, after their deadline, before any cleanup."""
        names = [node.name for node in self.nodes.cluster.nodes if node.name not in self.away]

        def there() -> list[str]:
            return [f"{name}: {one.cmdline}" for name in names for one in self.nodes.processes(name)]

        while there() and time.time() < noticed + CLEAN_S:
            time.sleep(0.1)
        return there()

    def _leases(self) -> list[str]:
        away = {self.nodes.cluster.node(name).address for name in self.away}
        with self.site.store() as store:
            return [lease.describe(time.time()) for lease in store.leases.all() if lease.node not in away]

    def reset(self) -> None:
        """The shared nodes are as they were, whatever a failed scenario left."""
        for node in self.nodes.cluster.nodes:
            for process in self.nodes.processes(node.name):
                self.nodes.exec(node.name, ["kill", "-9", str(process.pid)])

    def wait_for(self, condition: Any, what: str, seconds: float = 60) -> None:
        """Wait until a condition is true."""
        wait_for(condition, what=what, seconds=seconds)
