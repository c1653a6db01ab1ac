"""The first phase: read and check everything that needs no node."""

import dataclasses
import hashlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tipcflow.config.cluster import load_cluster, require_framework
from tipcflow.config.goldens import load_goldens
from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.config.run_documents import GoldensDocument, PolicyDocument, ReferencesDocument, SuiteDocument
from tipcflow.config.settings import settings
from tipcflow.config.suite import Suite, load_suite, suite_name
from tipcflow.domain import Cluster, ConfigError, Plan, Run
from tipcflow.domain.build import FrameworkBuild
from tipcflow.domain.run.names import ChainName
from tipcflow.domain.run_documents import (
    BuildDocument,
    ClusterDocument,
    Document,
    IncomparableDocument,
    MergeBaseDocument,
    SourceDocument,
)
from tipcflow.domain.triggers import AB, BISECT
from tipcflow.execute.node import preflight
from tipcflow.execute.request import RequestDocument, RunRequest
from tipcflow.execute.resolve.expects import keep_expected
from tipcflow.execute.resolve.moved import MovedDocument
from tipcflow.execute.resolve.placement import (
    doubtful_nodes,
    kept_part,
    load_of,
    place_nodes,
    placement_lock,
    rotated,
)
from tipcflow.execute.resolve.planning import make_plan
from tipcflow.execute.source import merge_base
from tipcflow.execute.source.cache import keep_snapshot, kept_snapshot
from tipcflow.execute.source.snapshot import Snapshot, take_snapshot
from tipcflow.execute.source.wheel import check_source, fetch_wheel
from tipcflow.execute.verdict import judge as judgement
from tipcflow.execute.verdict.confirm import cut, cut_alone, with_only
from tipcflow.parse import line_format

if TYPE_CHECKING:
    from tipcflow.store import Store
    from tipcflow.store.results.documents import LoadedDocuments

D = TypeVar("D", bound=Document)
# The constant documents that tasks of a run need, as stored by `resolve`.
SETTLED = (RequestDocument, SuiteDocument, PolicyDocument, ReferencesDocument, ClusterDocument)


@dataclass(frozen=True)
class Resolved:
    """A request whose files were read and checked."""

    request: RunRequest
    suite: Suite
    cluster: Cluster
    snapshot: Snapshot
    policy: Policy
    references: References
    build: FrameworkBuild | None = None

    def plan(
        self,
        run: str,
        flags: dict[str, frozenset[str]] | None = None,
        *,
        port: int | None = None,
        framework: str = "",
    ) -> Plan:
        """Return the plan of the run, with the nodes' CPU features, their framework's version and a free port once
        they are known."""
        plan = make_plan(
            self.request,
            self.suite,
            self.cluster,
            self.snapshot,
            run=run,
            step_deadline_s=self.policy.step_deadline_minutes * 60,
            cpu_flags=flags,
            port=port,
            framework=self.build.version if self.build else framework,
            build=self.build,
        )
        if not self.request.confirms:
            return with_only(plan, self.request.only)
        return cut_alone(plan, self.request.only) if self.request.evaluates else cut(plan, self.request.only)


def create_run(store: "Store", request: RunRequest, run_id: str) -> None:
    """Create the run's row from its request, with the name of its suite also if the request is invalid."""
    store.runs.create(Run(id=run_id, created_at=time.time(), **fields_of(request)), None)


def fields_of(request: RunRequest) -> dict[str, Any]:
    """Return the fields of a run's row that its request states."""
    suite = suite_name(request.suite, request.config_dir)
    return {
        "chain": str(ChainName.of_file(suite, request.params)),
        "suite": suite,
        "model": Path(request.params).parent.name,
        "mode": request.mode,
        "cluster": request.cluster,
        "trigger": request.trigger,
        "seed": request.seed,
        "compat": request.compat,
        "framework": request.framework,
    }


def resolve(store: "Store", request: RunRequest, run_id: str, *, home: Path) -> tuple[Resolved, Plan]:
    """Read the suite at the requested ref, make the plan, and store both for all later tasks of the run.

    Raises:
        ConfigError: the request or a file that it names is invalid; nothing was started.
        InfraError: the suite's git server is unreachable.
    """
    suite = load_suite(request.suite, request.config_dir)
    cluster = load_cluster(request.cluster, request.config_dir)
    if request.confirms:
        stored = store.documents.get(request.confirms, ClusterDocument)
        cluster = stored.root if stored else cluster
        # An evaluation runs on the nodes where the model was trained.
        cluster = cluster if request.evaluates else rotated(cluster)
    elif request.nodes_of:
        stored = store.documents.get(request.nodes_of, ClusterDocument)
        cluster = stored.root if stored else cluster
    build = _build(store, request, suite, home)
    if build is None and not request.confirms:
        require_framework(suite, cluster, requested=request.framework)
    policy = judgement.load_policy(request.policy, request.config_dir)
    policy = policy.for_model(suite.name, Path(request.params).parent.name)
    references = judgement.load_references(suite.name, request.config_dir)
    line_format(suite.log_format)
    if request.confirms:
        # The same bytes, even if the folder or the ref has changed since.
        snapshot = kept_snapshot(home, _source(store, request.confirms))
    else:
        snapshot = take_snapshot(
            suite, request.params, request.suite_ref, cache=home / "suites", only_inside=request.only_inside
        )
    resolved = Resolved(request, suite, cluster, snapshot, policy, references, build)
    plan = resolved.plan(run_id)
    with placement_lock(store, home):
        if not request.confirms and not request.nodes_of:
            load, doubtful = load_of(store, cluster, run_id), doubtful_nodes(store, cluster)
            cluster = kept_part(place_nodes(cluster, len(plan.nodes), load, doubtful=doubtful), len(plan.nodes))
            resolved = dataclasses.replace(resolved, cluster=cluster)
            plan = resolved.plan(run_id)
        store.plans.replace(run_id, plan)
        store.documents.remove(run_id, MovedDocument)
        store.runs.update(
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
        store.documents.put(run_id, base)
    if why := _incomparable(request):
        store.documents.put(run_id, IncomparableDocument(why=why))
    _keep_documents(store, run_id, resolved, plan, home)
    return resolved, plan


def _incomparable(request: RunRequest) -> str:
    """Return why the run is not compared and joins no history; '' if it does."""
    if request.diagnose:
        return "--diagnose"  # verbose frameworks are slower, and print other logs
    # Of an old or a bad commit, or of one of two versions.
    return {BISECT: "bisection", AB: "A/B comparison"}.get(request.trigger, "")


def _keep_documents(store: "Store", run_id: str, resolved: Resolved, plan: Plan, home: Path) -> None:
    """Keep all that the run was resolved to, for its later tasks."""
    request, snapshot = resolved.request, resolved.snapshot
    store.documents.put(run_id, RequestDocument(request))
    store.documents.put(run_id, SuiteDocument(resolved.suite))
    store.documents.put(run_id, ClusterDocument(resolved.cluster))
    store.documents.put(run_id, PolicyDocument(resolved.policy))
    store.documents.put(run_id, ReferencesDocument(resolved.references))
    if resolved.build:
        store.documents.put(run_id, BuildDocument(resolved.build))
    else:
        store.documents.remove(run_id, BuildDocument)
    goldens = load_goldens(request.config_dir, plan.chain, plan.mode)
    if goldens:
        store.documents.put(run_id, GoldensDocument(goldens))
    else:
        store.documents.remove(run_id, GoldensDocument)
    source = keep_snapshot(home, snapshot).model_copy(update=catalog_hash(request, snapshot, plan.chain))
    store.documents.put(run_id, source)


def _build(store: "Store", request: RunRequest, suite: Suite, home: Path) -> FrameworkBuild | None:
    """Return the build of the requested wheel; a release is chosen once the nodes are known."""
    if request.framework:
        preflight.parse_framework(request.framework)
    if request.confirms:
        stored = store.documents.get(request.confirms, BuildDocument)
        return stored.root if stored else None
    check_source(request.framework_wheel, request.framework_sha256, only_names=request.only_inside)
    if not request.framework_wheel:
        return None
    if request.framework:
        raise ConfigError(
            "is one of two frameworks", key="--framework", found=request.framework, expected="no --framework-wheel"
        )
    build = fetch_wheel(
        request.framework_wheel,
        request.framework_sha256,
        home=home,
        only_names=request.only_inside,
        hosts=settings().wheel_hosts,
    )
    if suite.framework and not build.name.startswith(suite.framework):
        raise ConfigError(
            f"suite {suite.name} needs {suite.framework}",
            key="--framework-wheel",
            found=build.name,
            expected=f"a wheel of {suite.framework}",
        )
    return build


def _base(
    store: "Store", request: RunRequest, resolved: Resolved, chain: str, home: Path
) -> MergeBaseDocument | None:
    """Return the merge base of the tested change; None for a run that tests no change."""
    if request.confirms:
        return store.documents.get(request.confirms, MergeBaseDocument)
    if not request.base:
        return None
    return merge_base.merge_base(
        resolved.suite,
        request.base,
        resolved.snapshot.commit,
        cache=home / "suites",
        measured=store.runs.suite_commits(chain),
    )


def resolved_run(store: "Store", run_id: str, *, home: Path) -> Resolved:
    """Return what `resolve` stored: the same for every later task, even if the files have changed.

    Raises:
        ConfigError: the run was never resolved.
        InfraError: the suite's snapshot is not on this machine.
    """
    documents = store.documents.several(run_id, (*SETTLED, SourceDocument, BuildDocument))
    build = documents.get(BuildDocument)
    return Resolved(
        build=build.root if build else None,
        request=resolved_document(documents, RequestDocument, run_id).root,
        suite=resolved_document(documents, SuiteDocument, run_id).root,
        cluster=resolved_document(documents, ClusterDocument, run_id).root,
        snapshot=kept_snapshot(home, resolved_document(documents, SourceDocument, run_id)),
        policy=resolved_document(documents, PolicyDocument, run_id).root,
        references=resolved_document(documents, ReferencesDocument, run_id).root,
    )


def kept_request(store: "Store", run_id: str) -> RunRequest:
    """Return the request of the run.

    Raises:
        ConfigError: the run was never resolved.
    """
    return resolved_document(store.documents.several(run_id, [RequestDocument]), RequestDocument, run_id).root


def resolved_document(documents: "LoadedDocuments", kind: type[D], run_id: str) -> D:
    """Return a document that `resolve` stored.

    Raises:
        ConfigError: no document, because the run was never resolved.
    """
    document = documents.get(kind)
    if document is None:
        raise ConfigError("the run was never resolved", key="run", found=run_id)
    return document


def _source(store: "Store", run_id: str) -> SourceDocument:
    return resolved_document(store.documents.several(run_id, [SourceDocument]), SourceDocument, run_id)


def catalog_hash(request: RunRequest, snapshot: Snapshot, chain: str) -> dict[str, str]:
    """Return the hashes of both versions of the params file: the executed one, and the catalog's, '' without
    one."""
    ours = request.config_dir / "chains" / f"{chain}{Path(snapshot.params_file).suffix}"
    catalog = hashlib.sha256(ours.read_bytes()).hexdigest() if ours.is_file() else ""
    return {
        "params_sha256": hashlib.sha256(snapshot.params_text.encode()).hexdigest(),
        "catalog_sha256": catalog,
    }
