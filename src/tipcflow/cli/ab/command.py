"""`tipcflow ab`: compare two versions of a suite or framework by pairs of runs."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tipcflow.cli.commands import options
from tipcflow.cli.output.output import print_json
from tipcflow.domain import Compat, ConfigError, Run, Status, exit_code

if TYPE_CHECKING:
    from typing import BinaryIO

    from tipcflow.execute.ab.comparison import Side
    from tipcflow.execute.ab.progress import Limits
    from tipcflow.execute.request import RunRequest

_Metric = Annotated[
    list[str] | None,
    typer.Option(help="Metric to compare, may be repeated. Default: training speed and latency of each leg."),
]
_Pairs = Annotated[int, typer.Option(min=0, help="Number of pairs. 0: run until every metric is decided.")]
_MostPairs = Annotated[int, typer.Option("--max-pairs", min=1, help="Maximum number of pairs without --pairs.")]
_UntilDecided = Annotated[
    bool, typer.Option("--until-decided", help="Run until every metric is decided: the default without --pairs.")
]
_WarmUps = Annotated[int, typer.Option("--warm-up", min=0, help="Number of pairs that do not count.")]
_Margin = Annotated[float, typer.Option(min=0, max=0.5, help="Differences up to this share count as none.")]
_Error = Annotated[
    float, typer.Option(min=0.0001, max=0.2, help="Maximum probability of a wrong outcome per metric.")
]


def ab(
    params: options.ParamsFile,
    suite: options.SuiteName,
    mode: options.Mode,
    cluster: options.ClusterName,
    a: Annotated[str, typer.Option("--a", help="Suite ref of A. Default: the working tree.")] = "",
    b: Annotated[str, typer.Option("--b", help="Suite ref of B. Default: the working tree.")] = "",
    framework_a: Annotated[str, typer.Option(help="Framework of A, for example paddlepaddle==3.3.0.")] = "",
    framework_b: Annotated[str, typer.Option(help="Framework of B.")] = "",
    wheel_a: Annotated[str, typer.Option(help="Framework wheel of A: address or path.")] = "",
    wheel_b: Annotated[str, typer.Option(help="Framework wheel of B.")] = "",
    sha256_a: Annotated[str, typer.Option(help="SHA-256 of --wheel-a.")] = "",
    sha256_b: Annotated[str, typer.Option(help="SHA-256 of --wheel-b.")] = "",
    metric: _Metric = None,
    pairs: _Pairs = 0,
    until_decided: _UntilDecided = False,
    max_pairs: _MostPairs = 20,
    warm_up: _WarmUps = 1,
    margin: _Margin = 0.02,
    error: _Error = 0.02,
    budget_minutes: options.BudgetMinutes = 0.0,
    seed: options.Seed = None,
    compat: options.CompatMode = Compat.SPEC,
    policy: options.PolicyName = "pr",
    as_json: options.AsJson = False,
) -> None:
    """Compare two versions of a suite or framework: pairs of runs on the same nodes, until the result is clear.

    Exit code 0: B is better or the same; 1: B is worse or fails; 4: undecided.
    """
    from tipcflow.config.settings import settings
    from tipcflow.domain.triggers import AB
    from tipcflow.execute.ab.progress import Limits
    from tipcflow.execute.request import RunRequest
    from tipcflow.execute.run.driver import owner_of_this_process

    if until_decided and pairs:
        raise ConfigError(
            "excludes --pairs", key="--until-decided", found=f"--pairs {pairs}", expected="one of both"
        )
    base = RunRequest(
        params=params,
        suite=suite,
        mode=mode,
        cluster=cluster,
        config_dir=settings().config_dir,
        seed=seed,
        compat=compat,
        policy=policy,
        trigger=AB,
        owner=owner_of_this_process(),
    )
    first = replace(
        base, suite_ref=a or None, framework=framework_a, framework_wheel=wheel_a, framework_sha256=sha256_a
    )
    second = replace(
        base, suite_ref=b or None, framework=framework_b, framework_wheel=wheel_b, framework_sha256=sha256_b
    )
    limits = Limits(error, margin, pairs, max_pairs, warm_up, budget_minutes * 60)
    raise typer.Exit(_compare(first, second, tuple(metric or ()), limits, as_json=as_json))


def _compare(
    first: "RunRequest", second: "RunRequest", names: tuple[str, ...], limits: "Limits", *, as_json: bool
) -> int:
    """Check the input, compare, print progress and the result; return the exit code."""
    from tipcflow.cli.output.output import columns, terminal_width
    from tipcflow.config.cluster import load_cluster
    from tipcflow.config.settings import settings
    from tipcflow.config.suite import load_suite
    from tipcflow.domain.run.names import ChainName
    from tipcflow.execute.ab.comparison import Comparison
    from tipcflow.execute.ab.metrics import check_names
    from tipcflow.execute.ab.sides import check_limits, sides_of
    from tipcflow.execute.ab.text import opening, pair_line, result_json, result_lines
    from tipcflow.execute.chain.measured import chain_metrics
    from tipcflow.execute.run import status_spool as spool
    from tipcflow.execute.source.params_at import check_params_at
    from tipcflow.store import Store

    home = settings().home
    check_limits(limits)
    load_cluster(first.cluster, first.config_dir)
    suite = load_suite(first.suite, first.config_dir)
    with Store.open() as store:
        spool.apply(home, store)
        chain = str(ChainName.of_file(suite.name, first.params))
        check_names(names, chain_metrics(store, chain, first.mode, first.compat.value))
        a, b = sides_of(first, second, home)
        refs = {"--a": first.suite_ref or "", "--b": second.suite_ref or ""}
        check_params_at(suite, first.params, refs, cache=home / "suites")
        comparison = Comparison(store, a, b, names, limits, _Execute(store, home))
        typer.echo(opening(a, b, limits), err=as_json)
        for progress in comparison.run():
            typer.echo(pair_line(progress), err=as_json)
    if as_json:
        print_json(result_json(a, b, limits, progress))
    else:
        width = terminal_width()
        for line in result_lines(limits, progress, lambda headers, rows: columns(headers, rows, width=width)):
            typer.echo(line)
    return exit_code(progress.status)


# Statuses of runs that had nodes which work.
_ON_NODES = frozenset({Status.PASS, Status.IMPROVEMENT, Status.REGRESSION, Status.UNCONFIRMED, Status.FAILED})


class _Execute:
    """Runs both sides of a pair, with a live display. The second run takes over the leases of the first one; all
    runs are on the nodes of the first one that has worked."""

    def __init__(self, store: Any, home: Path) -> None:
        self._store, self._home = store, home
        self._nodes_of = ""

    def __call__(self, first: "Side", second: "Side") -> tuple[Run, Run]:
        from tipcflow.cli.run import executed
        from tipcflow.domain import new_run_id
        from tipcflow.execute.resolve.resolve import create_run
        from tipcflow.execute.run import status_spool as spool

        held: list[BinaryIO | None] = []
        later = replace(second.request, nodes_of=self._nodes_of)
        following = new_run_id(Path(later.params).parent.name or Path(later.params).stem)

        def create() -> str:
            create_run(self._store, later, following)
            # A run without a status has a locked file, so that a killed process is noticed.
            held.append(spool.reserve(self._home, following))
            return following

        typer.echo(f"{first.label}: {first.name}", err=True)
        with executed(
            replace(first.request, nodes_of=self._nodes_of), self._store, self._home, heir=create
        ) as before:
            pass
        if before.status is Status.CANCELLED:
            return before, before
        later = replace(later, nodes_of=self._nodes_of or before.id)
        typer.echo(f"{second.label}: {second.name}", err=True)
        with executed(later, self._store, self._home, run=following) as after:
            pass
        for handle in held:
            if handle is not None:
                handle.close()
        if not self._nodes_of:  # a broken run may have had no nodes, or a broken one
            self._nodes_of = next((run.id for run in (before, after) if run.status in _ON_NODES), "")
        return before, after
