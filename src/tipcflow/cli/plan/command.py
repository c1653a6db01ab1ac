"""`tipcflow plan FILE`: shows what a run would execute."""

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from tipcflow.cli.commands import options
from tipcflow.domain import Compat, ConfigError, Plan

if TYPE_CHECKING:
    from tipcflow.execute.request import RunRequest
    from tipcflow.execute.source.snapshot import Snapshot


_Batch = Annotated[
    str, typer.Option("--batch", help="Plan a file of records (JSON Lines, also .gz); requires --compat bash.")
]


def plan(
    params: Annotated[
        str,
        typer.Argument(
            metavar="PARAMS", help="Params file: a path, or relative to the suite's root.", show_default=False
        ),
    ] = "",
    suite: options.SuiteName = "",
    mode: Annotated[
        str, typer.Option("--mode", "-m", help="TIPC mode; benchmark_train:CASE selects one case of a benchmark.")
    ] = "lite_train_lite_infer",
    cluster: Annotated[
        str, typer.Option("--cluster", "-c", help="Cluster to plan for. Default: the file's own addresses.")
    ] = "",
    suite_ref: Annotated[str | None, typer.Option(help="Git ref of the suite. Default: the working tree.")] = None,
    seed: options.Seed = None,
    repeats: options.Repeats = 1,
    diagnose: options.Diagnose = False,
    compat: options.CompatMode = Compat.SPEC,
    output: Annotated[
        Literal["table", "commands", "json"] | None,
        typer.Option("--format", "-f", help="Output format. Default: table and commands."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Same as --format json.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Compare bash and spec, with reasons.")] = False,
    expects: Annotated[bool, typer.Option("--expects", help="Print the expected evidence of a run.")] = False,
    policy: Annotated[str, typer.Option(help="Policy with the `min_history` of `--expects`. Default: pr.")] = "",
    budget: Annotated[
        str, typer.Option(help="Show which legs fit a time budget: minutes, or a name in configs/repositories.")
    ] = "",
    batch: _Batch = "",
) -> None:
    """Show the plan of a run: variants, steps, nodes, processes, legs, exact commands."""
    if batch:
        _batch(batch, params, compat, mode)
    _require(PARAMS=params, **{"--suite": suite})
    from tipcflow.config.settings import settings
    from tipcflow.execute.request import RunRequest

    request = RunRequest(
        params=params,
        suite=suite,
        mode=mode,
        cluster=cluster,
        config_dir=settings().config_dir,
        suite_ref=suite_ref,
        seed=seed,
        repeats=repeats,
        diagnose=diagnose,
        compat=compat,
    )
    json_only = as_json or output == "json"
    if expects:
        _print_expects(request, policy, as_json=json_only)
    elif diff:
        _print_diff(request, as_json=json_only)
    elif budget:
        _print_within(request, budget, as_json=json_only)
    else:
        _print_plan(request, "json" if as_json else output)


_REQUIRED = {
    "PARAMS": "a params file: a path, or relative to the suite's root",
    "--suite": "a name in configs/suites, or a YAML file",
}


def _require(**values: str) -> None:
    for name, value in values.items():
        if not value:
            raise ConfigError("is missing", key=name, expected=_REQUIRED[name], hint="see `tipcflow plan --help`")


def _make(*requests: "RunRequest", as_json: bool) -> list[Plan]:
    """The plans of requests that differ only in `compat`; a refused params file is printed before the error."""
    return _make_at(*requests, as_json=as_json)[1]


def _make_at(*requests: "RunRequest", as_json: bool) -> "tuple[Snapshot, list[Plan]]":
    """Like `_make`, with the suite's files."""
    from tipcflow.config.cluster import load_cluster
    from tipcflow.config.settings import settings
    from tipcflow.config.suite import load_suite
    from tipcflow.execute.resolve.planning import make_plan
    from tipcflow.execute.source.snapshot import take_snapshot
    from tipcflow.params.kinds import recognise

    first = requests[0]
    suite = load_suite(first.suite, first.config_dir)
    nodes = load_cluster(first.cluster, first.config_dir) if first.cluster else None
    snapshot = take_snapshot(suite, first.params, first.suite_ref, cache=settings().home / "suites")
    try:
        return snapshot, [make_plan(request, suite, nodes, snapshot, run="plan") for request in requests]
    except ConfigError:
        kind = recognise(snapshot.params_text, snapshot.params_file)
        if kind.refused and kind.kind != "other":
            from tipcflow.cli.plan.refused import print_refused

            print_refused(kind, snapshot.params_file, as_json=as_json)
        raise


def _print_diff(request: "RunRequest", *, as_json: bool) -> None:
    from tipcflow.cli.plan.diff import print_differences
    from tipcflow.params import load_dialect
    from tipcflow.plan.view.dialect_keys import dialect_keys

    # Suite scripts support neither a seed nor verbose logs.
    script = replace(request, compat=Compat.BASH, seed=None, diagnose=False)
    snapshot, (bash, spec) = _make_at(script, replace(request, compat=Compat.SPEC), as_json=as_json)
    dialect = load_dialect(spec.dialect)
    keys = dialect_keys(snapshot.params_text, file=snapshot.params_file, dialect=dialect, mode=spec.mode)
    print_differences(bash, spec, keys, as_json=as_json)


def _print_expects(request: "RunRequest", policy: str, *, as_json: bool) -> None:
    from tipcflow.cli.plan.expects import print_expects
    from tipcflow.config.policy import Policy
    from tipcflow.config.settings import settings
    from tipcflow.config.suite import load_suite
    from tipcflow.execute.verdict.judge import load_policy

    (made,) = _make(request, as_json=as_json)
    suite = load_suite(request.suite, request.config_dir)
    shipped = request.config_dir / "policies" / f"{request.policy}.yaml"
    rules = (
        load_policy(policy or request.policy, request.config_dir)
        if policy or shipped.is_file()
        else Policy(name="")
    )
    rules = rules.for_model(suite.name, made.model)
    print_expects(made, suite, rules, settings(), as_json=as_json)


def _print_within(request: "RunRequest", budget: str, *, as_json: bool) -> None:
    from tipcflow.cli.plan.budget import limits_of, print_budget
    from tipcflow.config.settings import settings

    limits = limits_of(budget, request.config_dir)
    (made,) = _make(request, as_json=as_json)
    print_budget(made, settings(), limits, as_json=as_json)


def _print_plan(request: "RunRequest", output: str | None) -> None:
    from tipcflow.cli.plan.durations import predict
    from tipcflow.cli.plan.page import print_commands, print_table
    from tipcflow.config.settings import settings

    (made,) = _make(request, as_json=output == "json")
    if output == "json":
        typer.echo(json.dumps(made.model_dump(mode="json"), indent=2))
    if output in (None, "table"):
        print_table(made, predict(made, settings()))
    if output in (None, "commands"):
        print_commands(made)


def _batch(records: str, params: str, compat: Compat, mode: str) -> NoReturn:
    from tipcflow.cli.plan.batch import run_batch

    if params:
        raise ConfigError("not allowed with --batch", key="PARAMS", found=params, expected="none")
    if compat is not Compat.BASH:
        raise ConfigError(
            "--batch requires --compat bash",
            key="--compat",
            found=compat.value,
            expected="bash",
        )
    raise typer.Exit(run_batch(records, mode=mode))
