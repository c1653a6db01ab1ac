"""`tipcflow alerts …`: regressions with state, owner and history."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tipcflow.cli.output.account import Who, account_name, reason_of
from tipcflow.cli.output.output import echo_lines, print_json, terminal_width
from tipcflow.cli.output.records import refuse_both
from tipcflow.cli.overview.printing import AsCsv, AsJson, note_generated, print_for_programs
from tipcflow.domain import ConfigError

if TYPE_CHECKING:
    from tipcflow.domain.alert.entry import Alert

app = typer.Typer(no_args_is_help=True, help="Regressions: state, owner, suspects and history.")

State = Literal["new", "acknowledged", "expected", "fixed", "invalid"]
StateFilter = Literal["open", State, "all"]
Number = Annotated[int, typer.Argument(help="Number of the alert.", min=1)]
Group = Annotated[bool, typer.Option("--group", help="Also the other alerts with the same cause.")]


@app.callback()
def _group() -> None:
    """Regressions: one alert per chain and cause, from its first bad run until its level returns."""


@app.command("list")
def show_list(
    state: Annotated[StateFilter, typer.Option(help="Only alerts in this state.")] = "open",
    chain: Annotated[str, typer.Option(help="Only chains whose name contains this text.")] = "",
    suite: Annotated[str, typer.Option(help="Only chains of this suite.")] = "",
    owner: Annotated[str, typer.Option(help="Only alerts of this user or team.")] = "",
    days: Annotated[float, typer.Option(min=0, help="Only alerts reported in the last N days; 0 for all.")] = 0,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """List alerts by cause, open ones first."""
    from tipcflow.cli.alerts.text import alerts_lines
    from tipcflow.execute.overview.alerts import WantedAlerts, load_alerts
    from tipcflow.store import Store

    refuse_both(as_json=as_json, as_csv=as_csv)
    wanted = WantedAlerts(suite=suite, chain=chain, owner=owner, state=state)
    with Store.open() as store:
        overview = load_alerts(store, wanted, days=days)
        note_generated(store.recorded.has_generated())
    if not print_for_programs(overview, as_json=as_json, as_csv=as_csv):
        echo_lines(alerts_lines(overview, width=terminal_width()))


@app.command("show")
def show(number: Number, as_json: AsJson = False) -> None:
    """Show an alert: metrics, runs, suspects, history, and the command that searches the commit."""
    from tipcflow.cli.alerts.text import alert_lines
    from tipcflow.execute.overview.alerts import load_alert
    from tipcflow.store import Store

    with Store.open() as store:
        detail = load_alert(store, number)
    if as_json:
        print_json(detail.model_dump(mode="json"))
        return
    echo_lines(alert_lines(detail))


@app.command("set")
def set_state_of(
    number: Number,
    state: Annotated[State, typer.Argument(help="New state.")],
    because: Annotated[
        str, typer.Option(help="Reason; stored with your name. Required for expected, fixed and invalid.")
    ] = "",
    owner: Annotated[str, typer.Option(help="User or team that owns the alert.")] = "",
    group: Group = False,
    who: Who = "",
    as_json: AsJson = False,
) -> None:
    """Set the state of an alert. `expected` does not change the baseline: `tipcflow baseline accept` does."""
    from tipcflow.domain.alert.entry import OPEN_STATES, AlertState
    from tipcflow.execute.alerts.decide import alerts_named, set_state
    from tipcflow.store import Store

    chosen = AlertState(state)
    why = because.strip() if chosen in OPEN_STATES else reason_of(because)
    with Store.open() as store:
        alerts = alerts_named(store, number, group=group)
        changed = set_state(store, alerts, chosen, who=account_name(who), why=why, owner=owner.strip())
    _print(changed, as_json=as_json)


@app.command("assign")
def assign_to(
    number: Number,
    owner: Annotated[str, typer.Argument(help="User or team that owns the alert.")],
    group: Group = False,
    who: Who = "",
    as_json: AsJson = False,
) -> None:
    """Set the owner of an alert."""
    from tipcflow.execute.alerts.decide import alerts_named, assign
    from tipcflow.store import Store

    if not owner.strip():
        raise ConfigError("is empty", key="OWNER", expected="a user or team")
    with Store.open() as store:
        alerts = alerts_named(store, number, group=group)
        changed = assign(store, alerts, owner.strip(), who=account_name(who))
    _print(changed, as_json=as_json)


@app.command("comment")
def comment_on(
    number: Number,
    text: Annotated[str, typer.Argument(help="The comment.")],
    group: Group = False,
    who: Who = "",
    as_json: AsJson = False,
) -> None:
    """Add a comment to the history of an alert."""
    from tipcflow.execute.alerts.decide import alerts_named, comment
    from tipcflow.store import Store

    if not text.strip():
        raise ConfigError("is empty", key="TEXT", expected="a comment")
    with Store.open() as store:
        alerts = alerts_named(store, number, group=group)
        comment(store, alerts, text.strip(), who=account_name(who))
    _print(alerts, as_json=as_json)


def _print(alerts: "Sequence[Alert]", *, as_json: bool) -> None:
    if as_json:
        print_json({"schema_version": 1, "alerts": [alert.model_dump(mode="json") for alert in alerts]})
        return
    for alert in alerts:
        owner = f", owner {alert.owner}" if alert.owner else ""
        typer.echo(f"alert {alert.number}: {alert.state.value}{owner}; {alert.chain} in {alert.mode}")
