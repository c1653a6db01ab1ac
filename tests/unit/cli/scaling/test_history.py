"""`tipcflow scaling list`."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.stories import a_run
from tests.unit.report.overview.test_scaling import a_series, a_topology

from tipcflow.domain import Status
from tipcflow.store import Store


def put(database: Path) -> None:
    old = a_series(a_topology("1n1g", 1, 100.0, speedup=1.0, efficiency=1.0, spread=0.01))
    new = a_series(
        a_topology("1n1g", 1, 110.0, speedup=1.0, efficiency=1.0, spread=0.01, status=Status.PASS, run="new"),
        a_topology("4n8g", 0, None, reason="4 nodes needed, cluster lab has 2"),
    )
    with Store.open(f"sqlite:///{database}") as store:
        now = store.now()
        for place, (name, document) in enumerate({"old": old, "new": new}.items()):
            store.runs.create(a_run(name, created_at=now - 1000 + place))
            store.documents.put(name, document)


def test_series_are_listed_newest_first(tipcflow: Callable[..., Any], database: Path) -> None:
    put(database)
    lines = tipcflow("scaling", "list").out.splitlines()
    assert lines[0].startswith(f"{a_run().chain}, fp32 on {a_run().cluster}, ")
    assert lines[1].split() == [
        "TOPOLOGY",
        "MEDIAN",
        "SPREAD",
        "SPEED-UP",
        "EFFICIENCY",
        "TO",
        "PREVIOUS",
        "STATUS",
        "RUN",
    ]
    assert lines[2].split() == ["1n1g", "110.00", "1.0", "%", "1.00", "100.0", "%", "+10.0", "%", "pass", "new"]
    assert lines[4:6] == ["4n8g: not_run: 4 nodes needed, cluster lab has 2", "note: note"]


def test_json_and_csv_are_printed(tipcflow: Callable[..., Any], database: Path) -> None:
    put(database)
    facts = json.loads(tipcflow("scaling", "list", "--json").out)
    assert [series["run"] for series in facts["series"]] == ["new", "old"]
    rows = list(csv.DictReader(io.StringIO(tipcflow("scaling", "list", "--csv").out)))
    assert [(row["series"], row["topology"]) for row in rows] == [
        ("new", "1n1g"),
        ("new", "4n8g"),
        ("old", "1n1g"),
    ]
    both = tipcflow("scaling", "list", "--json", "--csv")
    assert (both.code, both.out) == (2, "")


def test_list_without_matches_prints_a_message(tipcflow: Callable[..., Any], database: Path) -> None:
    put(database)
    out = tipcflow("scaling", "list", "--chain", "nothing").out
    assert out == "no scaling chain in the last 365 days; `tipcflow scaling run` measures one\n"
