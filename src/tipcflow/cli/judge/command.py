"""The command `tipcflow judge` and its options."""

from pathlib import Path
from typing import Annotated

import typer

from tipcflow.cli.output.records import refuse_both
from tipcflow.domain import ConfigError

_WHAT = "RUN, --since or --series"


def judge(
    run: Annotated[str, typer.Argument(help="Stored run: ID or a prefix of it, or latest.")] = "",
    since: Annotated[
        str, typer.Option(help="All runs since a date (UTC), for example 2026-11-21 or 2026-11-21T09:30.")
    ] = "",
    series: Annotated[
        Path | None, typer.Option(help="JSON Lines file: one series per line, oldest point first.")
    ] = None,
    policy: Annotated[
        str, typer.Option(help="weekly, pr, or a policy file. Default: the policy of each run.")
    ] = "",
    metric: Annotated[str, typer.Option(help="With --series: the metric of the values.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV, one row per different check, or per point of a series.")
    ] = False,
) -> None:
    """Evaluate a series run by run, or stored runs again, as the checks of a run do; nothing is changed.

    Exit code 0 for any result, 2 for invalid input.
    """
    refuse_both(as_json=as_json, as_csv=as_csv)
    if sum((bool(run), bool(since), series is not None)) != 1:
        raise ConfigError("exactly one of these is required", key=_WHAT, hint="`tipcflow judge --help`")
    if series is not None:
        from tipcflow.cli.judge.series import judge_file

        for name, given in (("--policy", policy), ("--metric", metric)):
            if not given:
                raise ConfigError("is missing", key=name, expected=f"{name} with --series")
        judge_file(series, policy, metric, as_json=as_json, as_csv=as_csv)
        return
    if metric:
        raise ConfigError("is valid only with --series", key="--metric", found=metric)
    from tipcflow.cli.judge.runs import judge_stored

    judge_stored(run, since, policy, as_json=as_json, as_csv=as_csv)
