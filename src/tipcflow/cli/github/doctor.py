"""`tipcflow github doctor`: checks the App, its webhook and its installations."""

import json
import os
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tipcflow.domain import ConfigError, TipcflowError
from tipcflow.domain.numbers.units import milliseconds, rough

if TYPE_CHECKING:
    from tipcflow.cli.doctor.findings import Finding
    from tipcflow.config.repository import Repository
    from tipcflow.github.client.app import App

app = typer.Typer(no_args_is_help=True, help="GitHub App of this deployment.")
PERMISSIONS = {
    "checks": "write",
    "issues": "write",
    "pull_requests": "write",
    "contents": "read",
    "metadata": "read",
    # Without it GitHub sends no event merge_group.
    "merge_queues": "read",
}
EVENTS = ("pull_request", "push", "issue_comment", "check_run", "merge_group")
# GitHub refuses App logins with a clock that is more than a minute ahead.
CLOCK_S = 30.0
_RECENT_S = 86400.0


@app.callback()
def _group() -> None:
    """GitHub App of this deployment."""


@app.command("doctor")
def doctor(
    repository: Annotated[str, typer.Argument(help="Name of a file in configs/repositories. Default: all.")] = "",
    app_id: Annotated[str, typer.Option(help="App ID, if AIRFLOW_CONN_<CONNECTION> is not set here.")] = "",
    private_key: Annotated[Path | None, typer.Option(help="File with the App's key in PEM form.")] = None,
    secret: Annotated[Path | None, typer.Option(help="File with the webhook secret; needed for the ping.")] = None,
    ping: Annotated[bool, typer.Option("--ping/--no-ping", help="Send a signed ping to the webhook.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check the App's key, permissions, events, installations, webhook, deliveries and this clock.

    Exit code 2 if there is a problem. The App's ID, key and secret are those of the Airflow connection where the
    variable AIRFLOW_CONN_<CONNECTION> contains them, otherwise those of the options.
    """
    from tipcflow.cli.doctor.command import print_findings
    from tipcflow.cli.output.output import print_json

    findings: list[Finding] = []
    for connection, repositories in _by_connection(repository).items():
        login = _login(connection, app_id, private_key, secret)
        findings += check_app(connection, repositories, *login, ping=ping)
    missing = sum(not finding.ok for finding in findings)
    if as_json:
        print_json({"ok": not missing, "findings": [finding.model_dump() for finding in findings]})
    else:
        print_findings(findings, missing)
    raise typer.Exit(2 if missing else 0)


def _by_connection(name: str) -> dict[str, list["Repository"]]:
    from tipcflow.config.repository import load_repositories, load_repository
    from tipcflow.config.settings import settings
    from tipcflow.config.suite import find_config

    folder = settings().config_dir
    if name:
        path = find_config(name, folder / "repositories", what="repository")
        repositories = [load_repository(path, folder)]
    else:
        repositories = list(load_repositories(folder))
    if not repositories:
        raise ConfigError("no repository is configured", file=str(folder / "repositories"), expected="<name>.yaml")
    grouped: dict[str, list[Repository]] = {}
    for repository in repositories:
        grouped.setdefault(repository.connection, []).append(repository)
    return grouped


def _login(connection: str, app_id: str, key: Path | None, secret: Path | None) -> tuple[str, str, str]:
    """(App id, private key, webhook secret) from the options, or from Airflow's variable of the connection."""
    stored = _connection(os.environ.get(_variable(connection), ""))
    return (
        app_id or str(stored.get("login") or ""),
        _text(key) if key else str(stored.get("private_key") or ""),
        _text(secret).strip() if secret else str(stored.get("password") or ""),
    )


def _variable(connection: str) -> str:
    return f"AIRFLOW_CONN_{connection.upper()}"


def _connection(text: str) -> dict[str, Any]:
    try:
        connection = json.loads(text)
        extra = connection.get("extra") or {}
        return {**connection, **(json.loads(extra) if isinstance(extra, str) else extra)}
    except (ValueError, AttributeError, TypeError):
        return {}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("cannot be read", file=str(path), found=type(error).__name__) from error


def check_app(
    connection: str, repositories: list["Repository"], app_id: str, key: str, secret: str, *, ping: bool
) -> list["Finding"]:
    """All findings about one App."""
    from tipcflow.cli.doctor.findings import Finding
    from tipcflow.github.client.app import App, server_time

    if not app_id or not key:
        variable = _variable(connection)
        known = f"{variable} here is not JSON with login and extra.private_key: change it"
        text = known if os.environ.get(variable) else f"set {variable} here"
        text += ", or give --app-id and --private-key"
        return [Finding(where=connection, what="login", ok=False, found=text)]
    try:
        github_app = App.of(repositories[0].api_url, app_id, key)
    except TipcflowError as error:
        return [Finding(where=connection, what="login", ok=False, found=error.message)]
    try:
        about, time_there = github_app.about()
    except TipcflowError as error:
        findings = [Finding(where=connection, what="login", ok=False, found=error.message)]
        # A wrong clock is a usual cause.
        url = repositories[0].api_url
        return findings + _guarded(connection, "clock", lambda: _about_clock(connection, server_time(url)))
    findings = [Finding(where=connection, what="login", ok=True, found=f"App {about.get('slug')}, id {app_id}")]
    findings += _about_app(connection, about, repositories)
    findings += _about_clock(connection, time_there)
    findings += _guarded(connection, "webhook", lambda: _about_hook(connection, github_app, secret, ping=ping))
    for repo in repositories:
        findings += _guarded(repo.name, "installation", lambda repo=repo: _about_installation(github_app, repo))  # type: ignore[misc]
    return findings


def _guarded(where: str, what: str, inspect: Callable[[], list["Finding"]]) -> list["Finding"]:
    from tipcflow.cli.doctor.findings import Finding

    try:
        return inspect()
    except TipcflowError as error:
        return [Finding(where=where, what=what, ok=False, found=error.message)]


def _about_app(where: str, about: Mapping[str, Any], repositories: list["Repository"]) -> list["Finding"]:
    from tipcflow.cli.doctor.findings import Finding

    slug = str(about.get("slug") or "")
    other = sorted({repository.app_slug for repository in repositories if repository.app_slug != slug})
    text = f"app_slug is {', '.join(other)}, the App is {slug}" if other else slug
    findings = [Finding(where=where, what="app_slug", ok=not other, found=text)]
    missing = sorted(set(EVENTS) - set(about.get("events") or ()))
    text = f"subscribe the App to {', '.join(missing)}" if missing else ", ".join(EVENTS)
    findings.append(Finding(where=where, what="events", ok=not missing, found=text))
    return findings


def _about_clock(where: str, time_there: float | None) -> list["Finding"]:
    from tipcflow.cli.doctor.findings import Finding

    if time_there is None:
        return []
    ahead = time.time() - time_there
    text = f"{rough(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} GitHub's"
    return [Finding(where=where, what="clock", ok=abs(ahead) < CLOCK_S, found=text)]


def _about_installation(github_app: "App", repository: "Repository") -> list["Finding"]:
    from tipcflow.cli.doctor.findings import Finding

    installed = github_app.installation(repository.name)
    if installed.get("suspended_at"):
        text = "unsuspend the App in the settings of the repository's owner"
        return [Finding(where=repository.name, what="permissions", ok=False, found=text)]
    granted = dict(installed.get("permissions") or {})
    ranks = ("", "read", "write", "admin")
    lacking = [
        f"{name}: {level}"
        for name, level in PERMISSIONS.items()
        if ranks.index(str(granted.get(name, ""))) < ranks.index(level)
    ]
    # The owner must accept permissions that the App got after its installation: until then, events are not sent.
    unsent = sorted(set(EVENTS) - set(installed.get("events") or ()))
    text = f"grant {', '.join(lacking)}" if lacking else f"installation {installed.get('id')}"
    if unsent:
        text += f"; this installation gets no events {', '.join(unsent)}: accept the App's new permissions"
    return [Finding(where=repository.name, what="permissions", ok=not lacking and not unsent, found=text)]


def _about_hook(where: str, github_app: "App", secret: str, *, ping: bool) -> list["Finding"]:
    from tipcflow.cli.doctor.findings import Finding

    hook = github_app.hook()
    url = str(hook.get("url") or "")
    findings = [
        Finding(where=where, what="webhook", ok=bool(url), found=url or "set the webhook's URL in the App"),
        Finding(
            where=where,
            what="secret",
            ok=bool(hook.get("secret")) and bool(secret),
            found=_secret_text(bool(hook.get("secret")), bool(secret)),
        ),
    ]
    wrong = hook.get("content_type") != "json"
    text = "set the content type application/json" if wrong else "application/json"
    findings.append(Finding(where=where, what="content type", ok=not wrong, found=text))
    if str(hook.get("insecure_ssl") or "0") != "0":
        text = "enable SSL verification in the App's webhook"
        findings.append(Finding(where=where, what="certificate", ok=False, found=text))
    recent = list(github_app.deliveries(time.time() - _RECENT_S))
    failed = [delivery for delivery in recent if not 200 <= delivery.status < 300]
    text = f"{len(failed)} of {len(recent)} deliveries of the last day failed"
    text += f", last with status {failed[0].status}" if failed else ""
    findings.append(Finding(where=where, what="deliveries", ok=not failed, found=text))
    if ping and url and secret:
        findings.append(_ping(where, url, secret))
    return findings


def _secret_text(at_github: bool, here: bool) -> str:
    if not at_github:
        return "set the webhook's secret in the App"
    return "set at GitHub and here" if here else "not known here: set the connection's password, or give --secret"


def _ping(where: str, url: str, secret: str) -> "Finding":
    """Send a signed ping, as GitHub does."""
    import httpx

    from tipcflow.cli.doctor.findings import Finding
    from tipcflow.github.webhook.delivery import signature

    body = json.dumps({"zen": "ping of tipcflow github doctor", "hook_id": 0, "id": uuid.uuid4().hex}).encode()
    headers = {
        "X-GitHub-Event": "ping",
        "X-GitHub-Delivery": str(uuid.uuid4()),
        "X-Hub-Signature-256": signature(secret.encode(), body),
        "Content-Type": "application/json",
    }
    begun = time.monotonic()
    try:
        response = httpx.post(url, content=body, headers=headers, timeout=10)
    except httpx.HTTPError as error:
        text = f"{url} does not respond ({type(error).__name__})"
        return Finding(where=where, what="ping", ok=False, found=text)
    took = f"{milliseconds(1000 * (time.monotonic() - begun))} ms"
    if response.status_code in (200, 202):
        return Finding(where=where, what="ping", ok=True, found=f"stored, {took}")
    text = f"{url} returned {response.status_code} for a signed ping (401: the secrets differ)"
    return Finding(where=where, what="ping", ok=False, found=text)
