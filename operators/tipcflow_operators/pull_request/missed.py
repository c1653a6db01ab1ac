"""Fetches deliveries that the webhook missed, as while Airflow was down: GitHub does not repeat them by itself."""

import hashlib
from collections.abc import Callable

from tipcflow.config.repository import Repositories, load_repositories
from tipcflow.domain import ConfigError, TipcflowError
from tipcflow.execute.sweeps.maintenance import Upkeep
from tipcflow.github.client.app import App, HookDelivery
from tipcflow.github.webhook import InstallationEvent, PingEvent, event_of
from tipcflow.github.webhook.events import EVENTS
from tipcflow.store import Store
from tipcflow_operators.pull_request.connect import app_of

# GitHub keeps deliveries for 3 days.
SINCE_S = 3 * 86400.0
# A delivery that the webhook receives at this moment is not missed.
FRESH_S = 120.0
MOST = 200


def missed_deliveries(upkeep: Upkeep) -> str:
    """Store the deliveries of all Apps that the webhook did not accept; no repositories, no query."""
    repositories = load_repositories(upkeep.config_dir)
    apps = {repository.connection: repository.api_url for repository in repositories}
    counts = [0, 0]
    for connection, url in apps.items():
        try:
            app = App.of(url, *app_of(connection))
            new, seen = fetch_missed(app, connection, repositories, upkeep.store, upkeep.now, report=upkeep.report)
        except TipcflowError as error:
            upkeep.report(f"connection {connection}: {error.message}")
            continue
        counts[0] += new
        counts[1] += seen
    return f"{counts[1]} deliveries of {len(apps)} Apps: {counts[0]} missed ones stored"


def fetch_missed(
    app: App,
    connection: str,
    repositories: Repositories,
    store: Store,
    now: float,
    *,
    report: Callable[[str], None],
) -> tuple[int, int]:
    """Store the missed deliveries of one App; returns (number of new rows, number of deliveries).

    The payload comes over the App's own login, so it needs no signature. A delivery that arrives again later has
    the same id and is a duplicate.
    """
    deliveries = list(app.deliveries(now - SINCE_S))
    accepted = {delivery.guid for delivery in deliveries if 200 <= delivery.status < 300}
    lost: dict[str, HookDelivery] = {}
    for delivery in deliveries:
        # 404: no file of configs/repositories has the repository.
        lacks_answer = delivery.guid not in accepted and delivery.status != 404
        if delivery.event in EVENTS and lacks_answer and delivery.at < now - FRESH_S:
            lost.setdefault(delivery.guid, delivery)
    stored = store.outbox.known(lost)
    oldest_first = sorted(
        (delivery for guid, delivery in lost.items() if guid not in stored), key=lambda delivery: delivery.at
    )
    new = 0
    for delivery in oldest_first[:MOST]:
        try:
            new += _store(app, delivery, connection, repositories, store)
        except ConfigError as error:
            report(f"delivery {delivery.guid}, event {delivery.event}: {error.message}")
        except (ValueError, TypeError, KeyError) as error:
            report(f"delivery {delivery.guid}, event {delivery.event}, cannot be read ({type(error).__name__})")
    return new, len(deliveries)


def _store(app: App, delivery: HookDelivery, connection: str, repositories: Repositories, store: Store) -> bool:
    event = event_of(delivery.event, app.payload(delivery.id))
    if event is None or isinstance(event, PingEvent | InstallationEvent):
        return False
    repository = repositories.of(connection, event.repository)
    return repository is not None and store.outbox.add(
        delivery=delivery.guid,
        # The raw bytes are unknown; this id alone detects repetitions.
        body_sha256=hashlib.sha256(f"delivery {delivery.guid}".encode()).hexdigest(),
        connection=connection,
        repository=repository.name,
        event=delivery.event,
        body=event.model_dump(mode="json"),
    )
