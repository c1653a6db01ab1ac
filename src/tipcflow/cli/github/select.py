"""`tipcflow select`: the chains that a change affects, and why."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tipcflow.domain import ConfigError
from tipcflow.domain.numbers.units import counted

if TYPE_CHECKING:
    from tipcflow.execute.changes import Candidates, FalseGreen
    from tipcflow.selection import Change, Choice


def select(
    repository: Annotated[str, typer.Argument(help="Name of a file in configs/repositories, or its path.")],
    head: Annotated[str, typer.Option(help="Commit or branch of the change.")] = "HEAD",
    base: Annotated[str, typer.Option(help="Commit or branch that the change is compared with.")] = "",
    path: Annotated[
        list[str] | None, typer.Option("--path", help="Instead of --base: a changed path; may be repeated.")
    ] = None,
    label: Annotated[list[str] | None, typer.Option(help="Label of the pull request; may be repeated.")] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Also list the chains that are not selected, and the false-green rate of the selection.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show which chains the DAG `pull_request` would run for a change, and why; nothing is started."""
    from tipcflow.cli.output.output import print_json
    from tipcflow.config.repository import load_repository
    from tipcflow.config.settings import settings
    from tipcflow.config.suite import find_config
    from tipcflow.execute.changes import candidates, choose, false_green, with_opened
    from tipcflow.store import Store

    if bool(base) == bool(path):
        raise ConfigError("give either --base or --path", expected="--base main")
    config = settings()
    file = find_config(repository, config.config_dir / "repositories", what="repository")
    rules, cache = load_repository(file, config.config_dir), config.home / "suites"
    candidate_set = candidates(rules, head, config.config_dir, cache=cache)
    change = _change(rules.suite, base, candidate_set.commit, tuple(path or ()), tuple(label or ()))
    with Store.open() as store:
        candidate_set = with_opened(candidate_set, change, rules, store, config.config_dir, cache=cache)
        rate = false_green(store, rules.name)
    choice = _without_skipped(choose(candidate_set, change, rules), change, rules.labels.skip)
    if as_json:
        print_json({**_as_dict(choice, change, candidate_set.commit), "false_green": _rate(rate)})
        return
    _print(choice, change, records=_records(candidate_set, rate) if explain else None)


def _without_skipped(choice: "Choice", change: "Change", skip: str) -> "Choice":
    """Nothing is selected if the label that skips all runs is set: the DAG then selects no chains at all."""
    from dataclasses import replace

    if skip not in change.labels:
        return choice
    return replace(choice, chosen=(), others={**choice.others, **dict.fromkeys(choice.chains, f"label {skip}")})


def _change(suite: str, base: str, head: str, paths: tuple[str, ...], labels: tuple[str, ...]) -> "Change":
    from tipcflow.config.settings import settings
    from tipcflow.config.suite import load_suite
    from tipcflow.execute.changes import changed_between
    from tipcflow.selection import Change

    complete = True
    if base:
        known = settings()
        loaded = load_suite(suite, known.config_dir)
        paths, complete = changed_between(loaded, base, head, cache=known.home / "suites")
        if not complete:
            raise ConfigError("the suite has no such ref", key="--base", found=base)
    return Change(paths=paths, complete=complete, labels=labels)


def _as_dict(choice: "Choice", change: "Change", commit: str) -> dict[str, Any]:
    return {
        "commit": commit,
        "changed": list(change.paths),
        "selected": [
            {"chain": chosen.chain, "because": chosen.because.value, "detail": chosen.detail}
            for chosen in choice.chosen
        ],
        "others": dict(choice.others),
        "unknown": list(choice.unknown),
        "problems": list(choice.problems),
    }


def _rate(rate: "FalseGreen") -> dict[str, Any]:
    missed = [{"chain": chain, "run": run} for chain, run in rate.missed]
    return {"missed": missed, "regressions": rate.regressions, "days": rate.days}


def _records(options: "Candidates", rate: "FalseGreen") -> list[str]:
    recorded = [traced for traced in options.chains if traced.opened is not None]
    stale = sum(traced.is_stale for traced in recorded)
    line = f"{len(recorded)} of {len(options.chains)} chains have a record of the files that they open"
    older = f"; {stale} of these are older than a change of such a file" if stale else ""
    return [line + older, rate.line, *(f"missed: {chain} in run {run}" for chain, run in rate.missed[:10])]


def _print(choice: "Choice", change: "Change", *, records: list[str] | None) -> None:
    """Print the choice; `records` are the last lines of --explain, None without it."""
    from tipcflow.cli.output.output import columns, echo_lines, terminal_width

    width = terminal_width()
    rows = [(chosen.chain, chosen.because.value, chosen.reason) for chosen in choice.chosen]
    if rows:
        echo_lines(columns(("SELECTED", "BY", "BECAUSE"), rows, width=width))
    if records is not None and choice.others:
        typer.echo("")
        echo_lines(columns(("NOT SELECTED", "BECAUSE"), sorted(choice.others.items()), width=width))
    if records is not None:
        for line in (*(f"no chain is known to use {path}" for path in choice.unknown), *records):
            typer.echo(line)
    for problem in choice.problems:
        typer.echo(f"problem: {problem}")
    total = len(choice.chosen) + len(choice.others)
    typer.echo(f"{counted(len(change.paths), 'changed file')}: {len(choice.chosen)} of {counted(total, 'chain')}")
