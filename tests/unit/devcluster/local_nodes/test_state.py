"""Left-over sets of nodes are distinguished from running ones."""

from pathlib import Path

import pytest

from devcluster.local_nodes import state


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "registry"
    folder.mkdir()
    monkeypatch.setattr(state, "registry", lambda: folder)
    return folder


def test_an_instance_is_left_over_once_its_lock_is_free(tmp_path: Path, registry: Path) -> None:
    made, ownership = state.new(tmp_path, "namespaces")
    assert state.leftovers(tmp_path) == []
    ownership.release()
    assert [found.id for found in state.leftovers(tmp_path)] == [made.id]
    state.forget(made)
    assert state.leftovers(tmp_path) == []
    assert list(registry.iterdir()) == []


def test_other_homes_are_found_through_the_registry(tmp_path: Path, registry: Path) -> None:
    made, ownership = state.new(tmp_path / "one", "loopback")
    ownership.release()
    assert [found.folder for found in state.leftovers(tmp_path / "two")] == [made.folder]


def test_leftover_of_an_owner_killed_before_writing_the_state_is_listed(tmp_path: Path, registry: Path) -> None:
    folder = tmp_path / "nodes" / "0123abcd"
    folder.mkdir(parents=True)
    state.Ownership(folder).release()
    (folder / "state.json").write_text("{half")
    assert [(found.id, found.kind) for found in state.leftovers(tmp_path)] == [("0123abcd", "")]


def test_the_state_survives_its_file(tmp_path: Path, registry: Path) -> None:
    made, ownership = state.new(tmp_path, "namespaces")
    made.bridge, made.links, made.processes = "tf1", {"a": "tf1n0"}, {"a": [(7, 8)]}
    made.save()
    ownership.release()
    (found,) = state.leftovers(tmp_path)
    assert (found.bridge, found.links, found.processes) == ("tf1", {"a": "tf1n0"}, {"a": [[7, 8]]})
    assert found.owner == [made.owner[0], made.owner[1]]


def test_a_registry_entry_without_a_folder_is_dropped(tmp_path: Path, registry: Path) -> None:
    (registry / "gone.instance").write_text(str(tmp_path / "gone"))
    assert state.leftovers(tmp_path) == []
    assert list(registry.iterdir()) == []
