"""Loads lines of metrics over runs. No query grows with the number of samples of a run."""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tipcflow.domain import ConfigError, MetricKey
from tipcflow.domain.numbers.metrics import metric
from tipcflow.domain.numbers.units import finite
from tipcflow.domain.triggers import SIDE_RUNS
from tipcflow.report.chain.series import MOST_LINES, Line, LineKey, SeriesOverview, line_of

if TYPE_CHECKING:
    from tipcflow.store import Store

LAST = 200


def parse_lines(texts: Sequence[str]) -> list[LineKey]:
    """Return the keys of lines, each once.

    Raises:
        ConfigError: a text does not name a line, or there are more than eight.
    """
    keys = []
    for text in dict.fromkeys(filter(None, texts)):
        try:
            keys.append(LineKey.parse(text))
        except ValueError as error:
            form = "chain|mode|environment class|semantics|step|leg|metric"
            raise ConfigError("does not name a line", key="s", found=text[:200], expected=form) from error
    if len(keys) > MOST_LINES:
        raise ConfigError("too many lines", key="s", found=str(len(keys)), expected=f"at most {MOST_LINES}")
    return keys


def load_series(
    store: "Store",
    keys: Sequence[LineKey],
    *,
    last: int = LAST,
    since: float | None = None,
    until: float | None = None,
    relative: bool = False,
) -> SeriesOverview:
    """Return the lines, in the order of the keys.

    Args:
        last: number of newest runs of each line.
        since, until: only runs of this period, seconds since the epoch; None for no limit.
        relative: in percent; lines of different units always are.
    """
    by_group: dict[tuple[str, str, str, str], list[LineKey]] = defaultdict(list)
    for key in keys:
        by_group[key.group].append(key)
    lines: dict[LineKey, Line] = {}
    for group, own in by_group.items():
        lines |= _lines(store, group, own, last, since, until)
    several = len({line.unit for line in lines.values()}) > 1
    return SeriesOverview(
        relative=relative or several, since=since, until=until, lines=tuple(lines[key] for key in keys)
    )


def _lines(
    store: "Store",
    group: tuple[str, str, str, str],
    keys: Sequence[LineKey],
    last: int,
    since: float | None,
    until: float | None,
) -> dict[LineKey, Line]:
    chain, mode, environment, compat = group
    known = store.numbers.recent(
        chain, mode=mode, environment=environment, compat=compat, limit=last, side=SIDE_RUNS
    )
    runs = [
        run
        for run in known
        if (since is None or run.created_at >= since) and (until is None or run.created_at <= until)
    ]
    values = store.numbers.some([run.id for run in runs], [key.key for key in keys])
    coarse = store.numbers.of([run.id for run in runs if run.id not in values])
    values |= {
        run_id: {key.key: own.values[key.key] for key in keys if key.key in own.values}
        for run_id, own in coarse.items()
    }
    rough = sum(not own.exact for own in coarse.values())
    return {key: line_of(key, runs, [finite(values[run.id].get(key.key)) for run in runs], rough) for key in keys}


def siblings_of(store: "Store", key: LineKey) -> tuple[list[LineKey], list[LineKey]]:
    """Return lines that may be added to a chart: the same metric in other modes and environment classes of the
    chain, and other evaluated metrics of the newest run with cached values.
    """
    groups = store.numbers.groups(key.chain, side=SIDE_RUNS)
    others = [LineKey(key.chain, *group[:3], key.step, key.leg, key.metric) for group in groups]
    recent = store.numbers.recent(
        key.chain, mode=key.mode, environment=key.environment, compat=key.compat, limit=3, side=SIDE_RUNS
    )
    numbers = store.numbers.of([run.id for run in recent])
    metrics: dict[MetricKey, None] = {}
    for run in reversed(recent):
        metrics |= dict.fromkeys(numbers[run.id].values)
    evaluated = sorted(own for own in metrics if metric(own.plain_metric).better != "none")
    more = [LineKey(*key.group, own.step, own.leg, own.metric) for own in evaluated]
    return [other for other in others if other != key], [other for other in more if other != key]
