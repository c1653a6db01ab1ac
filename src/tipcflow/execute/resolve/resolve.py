"""The first phase: read and check everything that needs no node."""

import dataclasses
import hashlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcflow.config.cluster import load_cluster
from tipcflow.config.goldens import load_goldens
from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.config.suite import Suite, load_suite
from tipcflow.domain import Cluster, Compat, ConfigError, Plan, Run
from tipcflow.domain.numbers.history import INCOMPARABLE
from tipcflow.execute.node import preflight
from tipcflow.execute.request import RunRequest, chain_name
from tipcflow.execute.resolve.expects import keep_expected
from tipcflow.execute.resolve.placement import load_of, placed, placing, turned
from tipcflow.execute.resolve.planning import make_plan
from tipcflow.execute.source import merge_base
from tipcflow.execute.source.cache import keep_snapshot, kept_snapshot
from tipcflow.execute.source.snapshot import Snapshot, take_snapshot
from tipcflow.execute.verdict import judge as judgement
from tipcflow.execute.verdict.confirm import cut, cut_alone
from tipcflow.parse import line_format

if TYPE_CHECKING:
    from tipcflow.store import Store


@dataclass(frozen=True)
class Resolved:
    """A request whose files were read and checked."""

    request: RunRequest
    suite: Suite
    cluster: Cluster
    snapshot: Snapshot
    policy: Policy
    references: References

    def plan(self, run: str, flags: dict[str, frozenset[str]] | None = None, *, port: int | None = None) -> Plan:
        """Return the plan of the run, with the nodes' CPU features and a free port once they are known."""
        plan = make_plan(
            self.request,
            self.suite,
            self.cluster,
            self.snapshot,
            run=run,
            step_deadline_s=self.policy.step_deadline_minutes * 60,
            cpu_flags=flags,
            port=port,
        )
        if not self.request.confirms:
            return plan
        return cut_alone(plan, self.request.only) if self.request.evaluates else cut(plan, self.request.only)


def create_run(store: "Store", request: RunRequest, run_id: str) -> None:
    """Create the run's row from its request."""
    store.create_run(
        Run(
            id=run_id,
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


def resolve(store: "Store", request: RunRequest, run_id: str, *, home: Path) -> tuple[Resolved, Plan]:
    """Read the suite at the requested ref, make the plan, and store both for all later tasks of the run.

    Raises:
        ConfigError: the request or a file that it names is invalid; nothing was started.
        InfraError: the suite's git server is unreachable.
    """
    suite = load_suite(request.suite, request.config_dir)
    cluster = load_cluster(request.cluster, request.config_dir)
    if request.confirms:
        kept = store.document(request.confirms, "cluster")
        cluster = Cluster.model_validate(kept) if kept else cluster
        # An evaluation runs on the nodes where the model was trained.
        cluster = cluster if request.evaluates else turned(cluster)
    if request.framework:
        preflight.parse_framework(request.framework)
    policy = judgement.load_policy(request.policy, request.config_dir)
    policy = policy.settled(suite.name, Path(request.params).parent.name)
    references = judgement.load_references(suite.name, request.config_dir)
    line_format(suite.log_format)
    if request.confirms:
        # The same bytes, even if the folder or the ref has changed since.
        snapshot = kept_snapshot(home, store.document(request.confirms, "source") or {})
    else:
        snapshot = take_snapshot(
            suite, request.params, request.suite_ref, cache=home / "suites", only_inside=request.only_inside
        )
    resolved = Resolved(request, suite, cluster, snapshot, policy, references)
    plan = resolved.plan(run_id)
    with placing(home):
        if not request.confirms:
            cluster = placed(cluster, len(plan.nodes), load_of(store, cluster.name, run_id))
            resolved = dataclasses.replace(resolved, cluster=cluster)
            plan = resolved.plan(run_id)
        store.replace_plan(run_id, plan)
        store.update_run(
            run_id,
            chain=plan.chain,
            suite=suite.name,
            model=plan.model,
            cluster=cluster.name,
            seed=plan.seed,
            suite_commit=snapshot.commit,
            suite_sha256=snapshot.sha256,
            nodes=plan.nodes,
        )
    keep_expected(store, run_id, plan, suite, policy)
    if base := _base(store, request, resolved, plan.chain, home):
        store.put_document(run_id, merge_base.DOCUMENT, base)
    if request.diagnose:
        # Verbose frameworks are slower, and print other logs.
        store.put_document(run_id, INCOMPARABLE, {"why": "--diagnose"})
    store.put_document(run_id, "request", _as_json(request))
    store.put_document(run_id, "suite", suite.model_dump(mode="json"))
    store.put_document(run_id, "cluster", cluster.model_dump(mode="json"))
    store.put_document(run_id, "policy", policy.model_dump(mode="json"))
    store.put_document(run_id, "references", references.model_dump(mode="json"))
    goldens = load_goldens(request.config_dir, plan.chain, plan.mode)
    store.put_document(run_id, "goldens", goldens.model_dump(mode="json") if goldens else None)
    store.put_document(run_id, "source", keep_snapshot(home, snapshot) | catalog_hash(request, snapshot))
    return resolved, plan


def _base(
    store: "Store", request: RunRequest, resolved: Resolved, chain: str, home: Path
) -> dict[str, Any] | None:
    """Return the merge base of the tested change; None for a run that tests no change."""
    if request.confirms:
        found: dict[str, Any] | None = store.document(request.confirms, merge_base.DOCUMENT)
        return found
    if not request.base:
        return None
    return merge_base.merge_base(
        resolved.suite,
        request.base,
        resolved.snapshot.commit,
        cache=home / "suites",
        measured=store.suite_commits(chain),
    )


def resolved_run(store: "Store", run_id: str, *, home: Path) -> Resolved:
    """Return what `resolve` stored: the same for every later task, even if the files have changed.

    Raises:
        ConfigError: the run was never resolved.
        InfraError: the suite's snapshot is not on this machine.
    """
    request = kept_request(store, run_id)
    return Resolved(
        request=request,
        suite=Suite.model_validate(store.document(run_id, "suite")),
        cluster=Cluster.model_validate(store.document(run_id, "cluster")),
        snapshot=kept_snapshot(home, store.document(run_id, "source")),
        policy=Policy.model_validate(store.document(run_id, "policy")),
        references=References.model_validate(store.document(run_id, "references")),
    )


def kept_request(store: "Store", run_id: str) -> RunRequest:
    """Return the request of the run.

    Raises:
        ConfigError: the run was never resolved.
    """
    return request_from(store.document(run_id, "request"), run_id)


def request_from(kept: dict[str, Any] | None, run_id: str) -> RunRequest:
    """Return the request stored in a document of the run.

    Raises:
        ConfigError: no document, because the run was never resolved.
    """
    if kept is None:
        raise ConfigError("the run was never resolved", key="run", found=run_id)
    known = {one.name for one in dataclasses.fields(RunRequest)}  # an earlier version may have stored other keys
    fields: dict[str, Any] = {
        **{key: value for key, value in kept.items() if key in known},
        "config_dir": Path(kept["config_dir"]),
        "compat": Compat(kept["compat"]),
        "command": tuple(kept["command"]),
        "only": tuple(kept.get("only", ())),
    }
    return RunRequest(**fields)


def catalog_hash(request: RunRequest, snapshot: Snapshot) -> dict[str, str]:
    """Return the hashes of both versions of the params file: the executed one, and the catalog's, '' without
    one."""
    suite, model, name = chain_name(request.suite, snapshot.params_file).split("/")
    ours = request.config_dir / "chains" / suite / model / f"{name}{Path(snapshot.params_file).suffix}"
    catalog = hashlib.sha256(ours.read_bytes()).hexdigest() if ours.is_file() else ""
    return {
        "params_sha256": hashlib.sha256(snapshot.params_text.encode()).hexdigest(),
        "catalog_sha256": catalog,
    }


def _as_json(request: RunRequest) -> dict[str, Any]:
    fields = dataclasses.asdict(request)
    return fields | {"config_dir": str(request.config_dir), "compat": str(request.compat)}
