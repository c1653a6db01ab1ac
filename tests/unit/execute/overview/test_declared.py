from pathlib import Path

from tipcflow.execute.overview.declared import declared_chains


def test_a_params_file_declares_a_chain(tmp_path: Path) -> None:
    for name in ("b/model/two.infer.txt", "b/model/one.txt", "a/model/one.txt", "a/model/notes.md", "a/loose.txt"):
        file = tmp_path / "chains" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    assert declared_chains(tmp_path) == ["a/model/one", "b/model/one", "b/model/two.infer"]


def test_missing_folder_declares_no_chains(tmp_path: Path) -> None:
    assert declared_chains(tmp_path) == []
