"""One run of one chain, from a request to a verdict.

resolve -> connect -> lease -> look at the nodes -> deploy -> steps -> release -> judge. Whatever happens, the run
gets a status with a reason, the leases are released and the nodes are listed for leftovers.
"""

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.config.cluster import load_cluster
from tipcflow.config.policy import Policy
from tipcflow.config.suite import Suite, load_suite
from tipcflow.domain import (
    Cluster,
    InfraError,
    NodeFacts,
    Plan,
    Run,
    Status,
    TipcflowError,
    new_run_id,
)
from tipcflow.execute import judgement, preflight
from tipcflow.execute.environment import environment_class
from tipcflow.execute.jobs import slots_needed
from tipcflow.execute.lease import LeaseKeeper
from tipcflow.execute.nodes import Nodes
from tipcflow.execute.planning import make_plan
from tipcflow.execute.progress import Event, Kind, Listener, silent
from tipcflow.execute.request import RunRequest, chain_name
from tipcflow.execute.source import Snapshot, take_snapshot
from tipcflow.execute.steps import StepRunner
from tipcflow.parse import line_format

if TYPE_CHECKING:
    from tipcflow.store import Store


class ChainRun:
    """Executes one request. `cancel` may be set from a signal handler: the run then stops and cleans up."""

    def __init__(
        self,
        request: RunRequest,
        store: "Store",
        *,
        home: Path,
        listener: Listener = silent,
        cancel: threading.Event | None = None,
    ) -> None:
        self.request = request
        self._store = store
        self._home = home
        self._say = listener
        self.cancel = cancel or threading.Event()
        self._policy = Policy(name="default")
        stem = Path(request.params).parent.name or Path(request.params).stem
        self.id = new_run_id(stem)

    def execute(self) -> Run:
        """Run to the verdict.

        Returns:
            the finished run, with status and reason. No error of a chain, a node or a setting is raised: it is
            the run's status. What is raised is a defect of ours or of the database.
        """
        request = self.request
        self._store.create_run(
            Run(
                id=self.id,
                chain=chain_name(request.suite, request.params),
                suite=request.suite,
                model=Path(request.params).parent.name,
                mode=request.mode,
                cluster=request.cluster,
                trigger=request.trigger,
                seed=request.seed,
                compat=request.compat,
                framework=request.framework,
                created_at=time.time(),
            ),
            None,
        )
        self._say(Event(Kind.RUN, self.id))
        try:
            return self._guarded()
        except TipcflowError as error:
            status = Status.CANCELLED if self.cancel.is_set() else error.status
            return self._finish(status, str(error))
        except BaseException as error:
            self._finish(Status.INFRA_FAILURE, f"tipcflow itself failed: {error!r}")
            raise

    def _guarded(self) -> Run:
        suite, cluster, snapshot, plan = self._resolve()
        with Nodes(cluster, plan.nodes, reconnect_s=self.request.reconnect_s) as nodes:
            self._note(f"connecting to {', '.join(plan.nodes)}")
            nodes.connect()
            with LeaseKeeper(
                self._store,
                self.id,
                slots_needed(plan, cluster),
                owner=self.request.owner,
                wait_s=self.request.wait_s,
                empty=nodes.holds_nothing_of,
                say=self._note,
                cancel=self.cancel,
            ) as lease:
                try:
                    facts = self._inspect(nodes, suite, cluster)
                    plan = self._settle(suite, cluster, snapshot, facts)
                    nodes.deploy(self.id, snapshot)
                    self._check_cancel()
                    StepRunner(
                        plan,
                        nodes,
                        self._store,
                        run=self.id,
                        home=self._home,
                        fence=lease.fence,
                        listener=self._say,
                        cancel=self.cancel,
                        log_format=suite.log_format,
                        budget_s=(suite.budget_minutes or self._policy.budget_minutes) * 60,
                    ).run()
                finally:
                    leftovers = nodes.clean(self.id)
            for line in leftovers:
                self._note(line)
            run = self._judge(suite, leftovers)
            if run.status in (Status.PASS, Status.IMPROVEMENT) and not self.request.keep:
                nodes.remove_run(self.id)
            return run

    def _resolve(self) -> tuple[Suite, Cluster, Snapshot, Plan]:
        """Read and check everything that can be read and checked before any node is asked."""
        request = self.request
        suite = load_suite(request.suite, request.config_dir)
        cluster = load_cluster(request.cluster, request.config_dir)
        if request.framework:
            preflight.parse_framework(request.framework)
        self._policy = judgement.load_policy(request.policy, request.config_dir)
        judgement.load_references(suite.name, request.config_dir)
        line_format(suite.log_format)
        snapshot = take_snapshot(suite, request.params, request.suite_ref, cache=self._home / "suites")
        plan = self._plan(suite, cluster, snapshot)
        self._store.replace_plan(self.id, plan)
        self._store.update_run(
            self.id,
            chain=plan.chain,
            suite=suite.name,
            model=plan.model,
            cluster=cluster.name,
            seed=plan.seed,
            suite_commit=snapshot.commit,
            suite_sha256=snapshot.sha256,
            nodes=plan.nodes,
        )
        return suite, cluster, snapshot, plan

    def _plan(
        self, suite: Suite, cluster: Cluster, snapshot: Snapshot, flags: dict[str, frozenset[str]] | None = None
    ) -> Plan:
        return make_plan(
            self.request,
            suite,
            cluster,
            snapshot,
            run=self.id,
            step_deadline_s=self._policy.step_deadline_minutes * 60,
            cpu_flags=flags,
        )

    def _inspect(self, nodes: Nodes, suite: Suite, cluster: Cluster) -> list[NodeFacts]:
        self._note("asking the nodes what they are, and whether they reach each other")
        facts = nodes.facts()
        for fact in facts:
            self._store.save_node_facts(self.id, fact)
        requirement = preflight.parse_framework(self.request.framework) if self.request.framework else None
        for line in preflight.check_nodes(cluster, facts, framework=suite.framework, requirement=requirement):
            self._note(line)
        return facts

    def _settle(self, suite: Suite, cluster: Cluster, snapshot: Snapshot, facts: list[NodeFacts]) -> Plan:
        """The plan with what the nodes' CPUs can do; stored, and never changed again."""
        flags = {fact.node: frozenset(fact.cpu_flags) for fact in facts if "machine" not in fact.unfinished}
        plan = self._plan(suite, cluster, snapshot, flags)
        self._store.replace_plan(self.id, plan)
        used = [fact for fact in facts if fact.node in plan.nodes]
        device = cluster.node(plan.nodes[0]).device
        world = max((variant.world_size for variant in plan.variants), default=1)
        framework = next((f"{fact.framework} {fact.framework_version}" for fact in used if fact.framework), "")
        self._store.update_run(
            self.id,
            environment=environment_class(used, device=device, world_size=world),
            framework=framework,
        )
        return plan

    def _check_cancel(self) -> None:
        if self.cancel.is_set():
            raise InfraError("stopped by a person")

    def _judge(self, suite: Suite, leftovers: list[str]) -> Run:
        self._note("judging")
        judged = judgement.judge_run(
            self._store, self.id, config_dir=self.request.config_dir, suite=suite.name, policy=self.request.policy
        )
        status, reason = judged.status, judged.reason
        if status is Status.CANCELLED:
            reason = f"stopped by a person{self._where_stopped()}"
        if leftovers and status.severity < Status.INFRA_FAILURE.severity:
            status, reason = Status.INFRA_FAILURE, leftovers[0]
        run = self._finish(status, reason)
        judgement.write_certificate(self._store, self.id, self._home)
        self._say(Event(Kind.CHECKS, reason, status=status))
        return run

    def _where_stopped(self) -> str:
        stopped = [
            step for step, (status, _) in self._store.step_statuses(self.id).items() if status is Status.CANCELLED
        ]
        return f" in {stopped[0]}" if stopped else ""

    def _finish(self, status: Status, reason: str) -> Run:
        self._store.finish_run(self.id, status, reason, time.time())
        return self._store.get_run(self.id)

    def _note(self, text: str) -> None:
        self._say(Event(Kind.NOTE, text))


def owner_of_this_process() -> str:
    """Who holds a lease: `user@host pid N`."""
    import getpass
    import os
    import socket

    return f"{getpass.getuser()}@{socket.gethostname()} pid {os.getpid()}"
