"""The weekly report is kept where other machines find it."""

from pathlib import Path

import pytest

from tipcflow_operators.weekly.summary import _store_report, summary_path


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    report = summary_path(tmp_path, "manual__1")
    report.parent.mkdir()
    report.write_text("## weekly\n")
    page = report.with_suffix(".html")
    page.write_text("<html></html>\n")
    return [report, page]


def test_a_report_is_written_to_the_object_store(
    tmp_path: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIPCFLOW_STORE", "")
    assert _store_report(*files) == ""
    bucket = tmp_path / "bucket"
    bucket.mkdir()
    monkeypatch.setenv("TIPCFLOW_STORE", f"file://{bucket}")
    assert _store_report(*files) == ""
    stored = {path.relative_to(bucket).as_posix(): path.read_text() for path in bucket.glob("weekly/*")}
    assert stored == {"weekly/manual__1.html": "<html></html>\n", "weekly/manual__1.md": "## weekly\n"}


def test_an_object_store_that_is_away_is_named(
    tmp_path: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIPCFLOW_STORE", f"file://{tmp_path}/nowhere")
    assert _store_report(*files) == (
        f"the report is not stored: the folder of the object store file://{tmp_path}/nowhere "
        "does not exist on this machine"
    )
