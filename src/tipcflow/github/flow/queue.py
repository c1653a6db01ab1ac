"""When waiting runs start: a forecast from the queue for slots and the durations of earlier runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tipcflow.store import Place, Store


@dataclass(frozen=True)
class Forecast:
    """The wait of a run.

    Attributes:
        place: its place in the queue, 1 for the next run.
        start_s: expected seconds until its start; None if the duration of a run before it is unknown.
    """

    place: int
    start_s: float | None


def forecasts(places: Sequence[Place], durations: Mapping[str, float]) -> dict[str, Forecast]:
    """Run -> its forecast, for all runs in the queue.

    The runs start in the order of the queue, each as soon as all its slots are free. A run that has taken longer
    than expected is expected to end now.

    Args:
        places: in queue order.
        durations: run -> expected seconds with its slots; runs of unknown duration are not included.
    """
    free: dict[tuple[str, int], float | None] = {}
    for place in places:
        for lease in place.held:
            took = durations.get(lease.run)
            free[lease.node, lease.slot] = None if took is None else max(0.0, lease.acquired_at + took - place.at)
    expected: dict[str, Forecast] = {}
    for place in places:
        waits = [free.get(slot, 0.0) for slot in place.request.slots]
        known = [wait for wait in waits if wait is not None]
        start = max(known, default=0.0) if len(known) == len(waits) else None
        expected[place.request.run] = Forecast(place.position, start)
        took = durations.get(place.request.run)
        end = None if start is None or took is None else start + took
        free.update(dict.fromkeys(place.request.slots, end))
    return expected


def forecast_waits(store: Store) -> dict[str, Forecast]:
    """Run -> its forecast, for all runs that wait for slots now."""
    places = store.queue.places()
    if not places:
        return {}
    concerned = {place.request.run for place in places} | {lease.run for place in places for lease in place.held}
    runs = store.runs.known(concerned)
    by_mode = {mode: store.history.durations(mode) for mode in {run.mode for run in runs.values()}}
    durations = {run.id: by_mode[run.mode][run.chain] for run in runs.values() if run.chain in by_mode[run.mode]}
    return forecasts(places, durations)
