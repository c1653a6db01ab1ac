"""`tipcflow bisect`: search for the commit or framework build that made a chain slower, worse, or fail."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tipcflow.cli.bisect.parallel import ParallelRuns, rounds
from tipcflow.cli.commands import options
from tipcflow.cli.output.output import print_json
from tipcflow.domain import Compat, PartKey, Run, Status, exit_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tipcflow.config.suite import Suite
    from tipcflow.execute.bisection.builds import Build
    from tipcflow.execute.bisection.commits import Commit
    from tipcflow.execute.bisection.loop import Bisection, Progress
    from tipcflow.execute.bisection.subject import Subject
    from tipcflow.execute.request import RunRequest

_Metric = Annotated[
    str, typer.Argument(help="Metric that became worse, for example batch_cost; failure for a chain that fails.")
]
_Good = Annotated[str, typer.Option(help="Suite ref at which the chain was good.")]
_Bad = Annotated[str, typer.Option(help="Later suite ref at which the chain is bad.")]
_Builds = Annotated[
    str,
    typer.Option(
        help="File with framework builds instead of --good and --bad, one per line, oldest first: NAME==VERSION, "
        "or a wheel and --hash=sha256:HASH. The first one is good, the last one bad."
    ),
]
_Ref = Annotated[str, typer.Option("--suite-ref", help="Suite ref to test with --builds.")]
_Step = Annotated[str, typer.Option(help="Step with the metric: its ID or the last part of it (train).")]
_Leg = Annotated[str, typer.Option(help="Leg with the metric.")]
_Confidence = Annotated[float, typer.Option(min=0.5, max=0.999, help="Required probability of the result.")]
_MostRuns = Annotated[int, typer.Option("--max-runs", min=0, help="Maximum number of new runs; 0 for no limit.")]
_Parallel = Annotated[
    int,
    typer.Option(
        min=1, max=8, help="Maximum number of runs at the same time; further runs start on free nodes only."
    ),
]


def bisect(
    params: options.ParamsFile,
    metric: _Metric,
    suite: options.SuiteName,
    mode: options.Mode,
    cluster: options.ClusterName,
    good: _Good = "",
    bad: _Bad = "",
    builds: _Builds = "",
    suite_ref: _Ref = "",
    step: _Step = "",
    leg: _Leg = "",
    confidence: _Confidence = 0.95,
    max_runs: _MostRuns = 40,
    budget_minutes: options.BudgetMinutes = 0.0,
    parallel: _Parallel = 1,
    seed: options.Seed = None,
    compat: options.CompatMode = Compat.SPEC,
    policy: options.PolicyName = "pr",
    as_json: options.AsJson = False,
) -> None:
    """Find the commit or framework build that made a chain worse, by as few runs as the noise permits.

    Versions are measured, again if necessary, until one has the required probability. Commits that touch files of
    the chain are more probable from the start, those of documentation only less. Stored runs of these versions
    count: the same command continues a bisection that was stopped. Exit code 0: the version is found; 4:
    undecided.
    """
    from tipcflow.config.settings import settings
    from tipcflow.domain.run.names import ChainName
    from tipcflow.domain.triggers import BISECT
    from tipcflow.execute.bisection.ends import check_given
    from tipcflow.execute.bisection.subject import Subject
    from tipcflow.execute.request import RunRequest
    from tipcflow.execute.run.driver import owner_of_this_process

    request = RunRequest(
        params=params,
        suite=suite,
        mode=mode,
        cluster=cluster,
        config_dir=settings().config_dir,
        suite_ref=suite_ref or None,
        seed=seed,
        compat=compat,
        policy=policy,
        trigger=BISECT,
        owner=owner_of_this_process(),
    )
    subject = Subject(str(ChainName.of_file(suite, params)), mode, compat.value, metric, step, leg)
    limits = {"most_runs": max_runs, "budget_s": budget_minutes * 60, "parallel": parallel}
    check_given(good, bad, suite_ref, has_builds=bool(builds))
    ends = Path(builds) if builds else (good, bad)
    raise typer.Exit(_search(request, subject, ends, confidence, limits, as_json=as_json))


def _search(
    request: "RunRequest",
    subject: "Subject",
    ends: tuple[str, str] | Path,
    confidence: float,
    limits: dict[str, Any],
    *,
    as_json: bool,
) -> int:
    """Check the input, search, print progress and the result; return the exit code."""
    from tipcflow.config.cluster import load_cluster
    from tipcflow.config.settings import settings
    from tipcflow.config.suite import load_suite
    from tipcflow.domain.run.names import ChainName
    from tipcflow.execute.bisection.loop import Bisection
    from tipcflow.execute.bisection.text import found_lines, opening, prior_line, result_json
    from tipcflow.execute.chain.measured import chain_metrics
    from tipcflow.execute.run import status_spool as spool
    from tipcflow.store import Store

    home = settings().home
    cluster = load_cluster(request.cluster, request.config_dir)
    suite = load_suite(request.suite, request.config_dir)
    subject = replace(subject, chain=str(ChainName.of_file(suite.name, request.params)))
    with Store.open() as store:
        spool.apply(home, store)
        subject.check(chain_metrics(store, subject.chain, subject.mode, subject.compat))
        versions = _versions(suite, request, ends, home / "suites")
        execute = _Execute(request, store, home)
        runs = ParallelRuns(execute.request_of, store, home, cluster)
        is_parallel = limits.get("parallel", 1) > 1
        bisection = Bisection(store, subject, versions, runs if is_parallel else execute, confidence, **limits)
        execute.part = bisection.part
        for line in filter(None, (opening(bisection), prior_line(bisection))):
            typer.echo(line, err=as_json)
        search = (
            rounds(bisection, runs, as_json=as_json) if is_parallel else _one_by_one(bisection, execute, as_json)
        )
        *_, progress = search
        if as_json:
            print_json(result_json(bisection, progress))
        else:
            for line in found_lines(bisection, progress):
                typer.echo(line)
    return 0 if progress.is_certain else exit_code(Status.UNCONFIRMED)


def _versions(
    suite: "Suite", request: "RunRequest", ends: tuple[str, str] | Path, cache: Path
) -> "tuple[Commit, ...] | tuple[Build, ...]":
    """Return the commits, with what they touch, or the builds of the list. The params file is at both ends."""
    from tipcflow.execute.bisection.builds import read_builds
    from tipcflow.execute.bisection.commits import commits_between
    from tipcflow.execute.bisection.touched import with_touches
    from tipcflow.execute.source.params_at import check_params_at

    if isinstance(ends, Path):
        builds = read_builds(ends)
        check_params_at(suite, request.params, {"--suite-ref": request.suite_ref or ""}, cache=cache)
        return builds
    commits = commits_between(suite, *ends, cache=cache)
    check_params_at(suite, request.params, dict(zip(("--good", "--bad"), ends, strict=True)), cache=cache)
    return with_touches(suite, commits, request.params, cache=cache)


def _one_by_one(bisection: "Bisection", execute: "_Execute", as_json: bool) -> "Iterator[Progress]":
    """Search with one run at a time, print a line before and after each run, and yield the progress."""
    from tipcflow.execute.bisection.text import measure_line, value_line

    for progress in bisection.run():
        if execute.last is not None:
            typer.echo(value_line(bisection, execute.last), err=as_json)
        if progress.next is not None:
            typer.echo(measure_line(bisection, progress), err=as_json)
        yield progress


class _Execute:
    """Runs the chain with a version, with a live display.

    Attributes:
        last: the finished run.
        part: returns the step that a run executes, with those that it needs; () for all steps.
    """

    def __init__(self, request: "RunRequest", store: Any, home: Path) -> None:
        self._request, self._store, self._home = request, store, home
        self.last: Run | None = None
        self.part: Callable[[], tuple[PartKey, ...]] = tuple

    def request_of(self, version: "Commit | Build") -> "RunRequest":
        """Return the request of a run with this version."""
        from tipcflow.execute.bisection.builds import Build

        request = replace(self._request, only=self.part())
        if not isinstance(version, Build):
            return replace(request, suite_ref=version.id)
        return replace(
            request,
            framework=version.requirement,
            framework_wheel=version.wheel,
            framework_sha256=version.sha256,
        )

    def __call__(self, version: "Commit | Build") -> Run:
        from tipcflow.cli.run import executed

        with executed(self.request_of(version), self._store, self._home) as finished:
            self.last = finished
            return finished
