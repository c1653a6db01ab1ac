"""`tipcflow select`: the chains that a change concerns, and why."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tipcflow.domain import ConfigError

if TYPE_CHECKING:
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
        bool, typer.Option("--explain", help="Also list the chains that are not selected.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show which chains the DAG `pull_request` would run for a change, and why; nothing is started."""
    from tipcflow.cli.output.output import print_json
    from tipcflow.config.repository import load_repository
    from tipcflow.config.settings import settings
    from tipcflow.config.suite import find_config
    from tipcflow.execute.changes import candidates, choose

    if bool(base) == bool(path):
        raise ConfigError("give either --base or --path", expected="--base main")
    config = settings()
    file = find_config(repository, config.config_dir / "repositories", what="repository")
    rules, cache = load_repository(file, config.config_dir), config.home / "suites"
    candidate_set = candidates(rules, head, config.config_dir, cache=cache)
    change = _change(rules.suite, base, candidate_set.commit, tuple(path or ()), tuple(label or ()))
    choice = choose(candidate_set, change, rules)
    if as_json:
        print_json(_as_dict(choice, change, candidate_set.commit))
        return
    _print(choice, change, explain=explain)


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


def _print(choice: "Choice", change: "Change", *, explain: bool) -> None:
    from tipcflow.cli.output.output import columns, echo_lines, terminal_width

    width = terminal_width()
    rows = [(chosen.chain, chosen.because.value, chosen.reason) for chosen in choice.chosen]
    if rows:
        echo_lines(columns(("SELECTED", "BY", "BECAUSE"), rows, width=width))
    if explain and choice.others:
        typer.echo("")
        echo_lines(columns(("NOT SELECTED", "BECAUSE"), sorted(choice.others.items()), width=width))
    if explain:
        for path in choice.unknown:
            typer.echo(f"no chain is known to use {path}")
    for problem in choice.problems:
        typer.echo(f"problem: {problem}")
    total = len(choice.chosen) + len(choice.others)
    typer.echo(f"{len(change.paths)} changed files: {len(choice.chosen)} of {total} chains")
