"""Figures of a simulation: throughput, waits, load and growth of the database."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from sqlalchemy import inspect, text
from world import HOUR_S, SLOTS

if TYPE_CHECKING:
    from simulate import Site

    from tipcflow.store import Store

WEEKS, YEAR_H = 52, 365 * 24
# Mean time between the polls of a waiting run.
POLL_S = 5.0
# Calls that hold the lock of the queue.
LOCKING = ("join", "acquire", "renew", "release", "drop")


def of(site: "Site", calls: dict[str, list[float]], store: "Store", seconds: float) -> dict[str, Any]:
    """Return all figures as JSON values."""
    size, tables = sizes(store)
    return {
        "options": {name: value for name, value in vars(site.options).items() if name != "results"},
        "wall_s": seconds,
        "runs": dict(Counter(line.wanted.trigger for line in site.runs.values())),
        "statuses": dict(Counter(line.status for line in site.runs.values())),
        "failures": len(site.failures),
        "problems": len(site.problems),
        "bypassed": len(site.bypassed),
        "throughput": _throughput(site),
        "waits": {name: _spread(waits) for name, waits in _waits(site).items()},
        "pulls": _spread(list(_pulls(site))),
        "calls": {kind: _spread(values) | {"calls": len(values)} for kind, values in sorted(calls.items())},
        "lock": _lock(site, calls),
        "growth": _growth(site, size, tables),
    }


def _throughput(site: "Site") -> dict[str, float]:
    """Node hours of work over those of the cluster until the last weekly run, and the time against the ideal."""
    weekly = [line for line in site.runs.values() if line.wanted.trigger == "weekly"]
    end = max((line.ended or 0.0 for line in weekly), default=0.0)
    if not end:
        return {}
    work = 0.0
    for line in site.runs.values():
        if line.granted is not None and line.granted < end:
            work += len(line.slots) / SLOTS * (min(line.ended or end, end) - line.granted)
    away = sum(max(0.0, min(until, end) - since) for since, until in site.failures)
    capacity = site.options.nodes * end - away
    longest = max((line.wanted.seconds for line in weekly if line.status == "pass"), default=0.0)
    ideal = max(work / (capacity / end), longest)
    return {
        "weekly_h": end / HOUR_S,
        "ideal_h": ideal / HOUR_S,
        "ratio": end / ideal,
        "busy": work / capacity,
        "runs_per_hour": sum((line.ended or end + 1) <= end for line in site.runs.values()) / (end / HOUR_S),
    }


def _waits(site: "Site") -> dict[str, list[float]]:
    found: defaultdict[str, list[float]] = defaultdict(list)
    for line in site.runs.values():
        if line.granted is not None:
            found[line.wanted.trigger].append(line.granted - line.arrived)
    return found


def _pulls(site: "Site") -> Iterator[float]:
    """Yield seconds from each pull request to the last status of its runs."""
    ends: dict[int, float] = {}
    opened: dict[int, float] = {}
    for line in site.runs.values():
        if line.wanted.pull >= 0 and line.ended is not None:
            ends[line.wanted.pull] = max(ends.get(line.wanted.pull, 0.0), line.ended)
            opened[line.wanted.pull] = line.arrived
    yield from (end - opened[number] for number, end in ends.items())


def _lock(site: "Site", calls: dict[str, list[float]]) -> dict[str, float]:
    """Return how busy the lock of the queue is: shares of the busiest hour and of the whole time.

    A waiting run polls every 5 s. Polls that were not executed count with the mean duration of the executed ones.
    """
    end = max((line.ended or 0.0 for line in site.runs.values()), default=0.0)
    poll = fmean(calls["join"]) if calls.get("join") else 0.0
    per_hour: Counter[int] = Counter()
    for line in site.runs.values():
        until = line.granted if line.granted is not None else line.ended or end
        for hour in range(int(line.arrived // HOUR_S), int(until // HOUR_S) + 1):
            per_hour[hour] += max(0.0, min(until, (hour + 1) * HOUR_S) - max(line.arrived, hour * HOUR_S))
    own = sum(sum(calls.get(kind, ())) for kind in LOCKING) / end if end else 0.0
    peak = max(per_hour.values(), default=0.0) / HOUR_S
    return {
        "mean_waiting": sum(per_hour.values()) / end if end else 0.0,
        "peak_waiting": peak,
        "poll_ms": 1000 * poll,
        "calls_share": own,
        "polls_share": sum(per_hour.values()) / end / POLL_S * poll if end else 0.0,
        "peak_polls_share": peak / POLL_S * poll,
        "waiting_at_full_lock": (1 - own) * POLL_S / poll if poll else math.inf,
    }


def sizes(store: "Store") -> tuple[int, dict[str, int]]:
    """Return bytes of the database and of its tables with their indexes."""
    engine = store.database.engine
    with engine.connect() as connection:
        names = inspect(connection).get_table_names()
        if engine.dialect.name == "postgresql":
            connection.execute(text("ANALYZE"))
            whole = connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one()
            query = text("SELECT pg_total_relation_size(quote_ident(:name))")
            sizes_of = {name: connection.execute(query, {"name": name}).scalar_one() for name in names}
            return int(whole), {name: int(size) for name, size in sizes_of.items()}
        file = Path(str(engine.url.database))
        return sum(path.stat().st_size for path in file.parent.glob(f"{file.name}*")), {}


def _growth(site: "Site", size: int, tables: dict[str, int]) -> dict[str, Any]:
    """Return bytes per run and per year; `series` only has the numbers of every --full-every th run."""
    count = len(site.runs)
    full = sum(int(run.rpartition("-")[2]) % site.options.full_every == 0 for run in site.runs)
    counts = Counter(line.wanted.trigger for line in site.runs.values())
    per_year = counts["weekly"] * WEEKS + sum(counts[name] for name in ("github", "manual")) * (
        YEAR_H / site.options.hours
    )
    heavy = ("series", "check_results")
    series = sum(tables.get(name, 0) for name in heavy)
    bytes_per_run = series / max(full, 1) + (size - series) / max(count, 1)
    return {
        "bytes": size,
        "bytes_per_run": bytes_per_run,
        "numbers_per_run": series / max(full, 1),
        "runs_per_year": per_year,
        "gb_per_year": per_year * bytes_per_run / 1e9,
        "tables_mb": {name: round(tables[name] / 1e6, 1) for name in sorted(tables, key=tables.__getitem__)[-8:]},
    }


def _spread(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    ordered = sorted(values)

    def at(share: float) -> float:
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    return {"count": len(ordered), "median": at(0.5), "p95": at(0.95), "max": ordered[-1], "sum": sum(ordered)}


def tables(found: dict[str, Any]) -> Iterator[str]:
    """Yield the figures as lines."""
    options = found["options"]
    yield (
        f"{options['nodes']} nodes, {options['schedulers']} schedulers, {options['database']}: "
        f"{sum(found['runs'].values())} runs {found['runs']}, {found['statuses']}, "
        f"{found['failures']} node failures, {found['problems']} problems, "
        f"{found['bypassed']} runs bypassed on other nodes; took {found['wall_s']:.0f} s"
    )
    yield "throughput: " + ", ".join(f"{name} {value:.2f}" for name, value in found["throughput"].items())
    yield f"\n{'wait for slots, s':<22}{'runs':>8}{'median':>10}{'p95':>10}{'max':>10}"
    for name, row in {**found["waits"], "pull request to verdict": found["pulls"]}.items():
        if row:
            yield f"{name:<22}{row['count']:>8}{row['median']:>10.0f}{row['p95']:>10.0f}{row['max']:>10.0f}"
    yield f"\n{'calls, ms':<22}{'calls':>8}{'median':>10}{'p95':>10}{'max':>10}{'sum s':>10}"
    for name, row in found["calls"].items():
        times = "".join(f"{1000 * row[key]:>10.1f}" for key in ("median", "p95", "max"))
        yield f"{name:<22}{row['calls']:>8}{times}{row['sum']:>10.1f}"
    yield "\nqueue lock: " + ", ".join(f"{name} {value:.4g}" for name, value in found["lock"].items())
    growth = found["growth"]
    yield "growth: " + ", ".join(f"{name} {value:.4g}" for name, value in growth.items() if name != "tables_mb")
    yield f"largest tables, MB: {growth['tables_mb']}"
