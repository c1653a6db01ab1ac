"""The matrix of a small history."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.stories import INFER, T0, TRAIN, a_run, open_store, record_run

from tipcflow.domain import Status
from tipcflow.execute.overview.matrix import By, Grid, load_matrix
from tipcflow.report.overview.matrix import Matrix
from tipcflow.store import Store

DAY = 86_400


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "own.db") as store:
        yield store


def put(store: Store, day: int, status: Status, chain: str = "s/alpha/a", **fields: object) -> None:
    known = {"chain": chain, "suite": chain.split("/")[0], "framework": f"paddle {day}", "environment": "gpu"}
    known |= {"created_at": T0 + day * DAY, "ended_at": T0 + day * DAY + 9}
    name = f"{chain.replace('/', '-')}-{day:02}-{fields.get('environment', 'gpu')}"
    store.runs.create(a_run(name, status=status, **(known | fields)))


@pytest.fixture
def runs(store: Store) -> Store:
    """alpha passed and fails with build 3; beta passes; gamma passes on one of two environment classes."""
    for day in (1, 2):
        put(store, day, Status.PASS)
        put(store, day, Status.PASS, "s/beta/a")
    put(store, 3, Status.FAILED)
    put(store, 3, Status.PASS, "t/gamma/a")
    put(store, 3, Status.REGRESSION, "t/gamma/a", environment="cpu")
    return store


def rows(matrix: Matrix) -> dict[str, dict[str, str]]:
    return {row.model: {name: cell.status.value for name, cell in row.cells.items()} for row in matrix.rows}


def test_builds_with_the_worst_models_first(runs: Store) -> None:
    matrix = load_matrix(runs)
    assert matrix.columns == ("paddle 3", "paddle 2", "paddle 1")
    assert list(rows(matrix).items()) == [
        ("alpha", {"paddle 3": "failed", "paddle 2": "pass", "paddle 1": "pass"}),
        ("gamma", {"paddle 3": "regression"}),
        ("beta", {"paddle 2": "pass", "paddle 1": "pass"}),
    ]
    assert (matrix.total, matrix.passing) == (3, 1)
    cell = matrix.rows[1].cells["paddle 3"]
    assert (cell.run, cell.runs, cell.bad) == ("t-gamma-a-03-cpu", 2, 1)


def test_the_newest_run_of_a_build_counts(runs: Store) -> None:
    put(runs, 4, Status.PASS, framework="paddle 3")
    assert rows(load_matrix(runs))["alpha"]["paddle 3"] == "pass"


@pytest.mark.parametrize(
    ("by", "columns"),
    [("environment", ("cpu", "gpu")), ("mode", ("lite_train_lite_infer",)), ("variant", ())],
)
def test_matrix_has_other_columns_on_request(runs: Store, by: By, columns: tuple[str, ...]) -> None:
    matrix = load_matrix(runs, Grid(by=by))
    assert matrix.columns == columns
    if by == "environment":
        assert rows(matrix)["gamma"] == {"cpu": "regression", "gpu": "pass"}


def test_variants_have_the_worst_of_their_steps(store: Store) -> None:
    run = record_run(store, a_run(chain="s/alpha/a", suite="s"))
    store.steps.set(run.id, TRAIN, Status.PASS)
    store.steps.set(run.id, INFER, Status.FAILED)
    assert rows(load_matrix(store, Grid(by="variant"))) == {"alpha": {"norm_train_cpu": "failed"}}
    store.steps.set(run.id, INFER, Status.NOT_RUN)
    assert rows(load_matrix(store, Grid(by="variant"))) == {"alpha": {"norm_train_cpu": "pass"}}


@pytest.mark.parametrize(
    ("grid", "models"),
    [
        (Grid(suite="t"), ["gamma"]),
        (Grid(chain="BET"), ["beta"]),
        (Grid(problems=True), ["alpha", "gamma"]),
        (Grid(suite="none"), []),
    ],
)
def test_matrix_rows_are_filtered(runs: Store, grid: Grid, models: list[str]) -> None:
    matrix = load_matrix(runs, grid)
    assert (list(rows(matrix)), matrix.total) == (models, len(models))
    if grid.problems:
        assert (matrix.models, matrix.passing) == (3, 1)


def test_matrix_is_split_into_pages(runs: Store) -> None:
    assert load_matrix(runs, Grid(columns=2)).columns == ("paddle 3", "paddle 2")
    part = load_matrix(runs, limit=1, offset=1)
    assert (list(rows(part)), part.total) == (["gamma"], 3)
