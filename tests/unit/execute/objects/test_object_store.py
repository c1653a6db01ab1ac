"""The object store: a folder, fsspec's memory and an S3 service behave alike; each problem is one clear error."""

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from tests.support.compose.s3 import Service

import tipcflow.execute.objects.object_store as module
from tipcflow.domain import ConfigError, InfraError
from tipcflow.execute.objects.object_store import MissingObjectError, ObjectStore, object_store

NAME = "runs/r 1/v%train~1/node-a/logs/main.log"


@pytest.fixture(params=["file", "memory", pytest.param("s3", marks=pytest.mark.process)])
def objects(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ObjectStore]:
    (tmp_path / "store").mkdir()
    if request.param != "s3":
        urls = {"file": f"file://{tmp_path}/store", "memory": f"memory://{tmp_path.name}"}
        yield ObjectStore(urls[request.param])
        return
    service: Service = request.getfixturevalue("s3")
    for name, value in service.env.items():
        monkeypatch.setenv(name, value)
    bucket = f"b-{uuid.uuid4().hex}"
    service.make_bucket(bucket)
    # Clients keep the address of the service.
    module._file_system.cache_clear()
    yield ObjectStore(f"s3://{bucket}/a folder")
    module._file_system.cache_clear()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "main.log"
    path.write_text("loss 1.0\n")
    return path


class Broken:
    """A file system whose calls fail, each with the next of some errors."""

    def __init__(self, *errors: Exception | Callable[[], Any]) -> None:
        self.errors = list(errors)
        self.calls = 0

    def info(self, _: str) -> dict[str, int]:
        self.calls += 1
        if self.errors:
            error = self.errors.pop(0)
            if isinstance(error, Exception):
                raise error
            error()
        return {"size": 3}


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Broken]:
    def broken(*errors: Exception | Callable[[], Any]) -> Broken:
        system = Broken(*errors)
        monkeypatch.setattr(module, "_file_system", lambda *_: system)
        return system

    return broken


def test_written_object_is_read_unchanged(objects: ObjectStore, file: Path, tmp_path: Path) -> None:
    assert objects.put(NAME, file) == 9
    assert objects.find(NAME) is not None
    assert objects.read(NAME) == b"loss 1.0\n"
    assert objects.read(NAME, last=4) == b"1.0\n"
    assert objects.read(NAME, last=99) == b"loss 1.0\n"
    objects.get(NAME, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == file.read_bytes()
    file.write_text("x")
    objects.put(NAME, file)
    assert objects.read(NAME) == b"x", "the newest content"


def test_objects_below_a_folder_are_listed(objects: ObjectStore, file: Path) -> None:
    assert objects.below("runs/r 1") == []
    before = time.time() - 5
    for name in (NAME, "runs/r 1/b", "runs/r 10/c", "suites/d"):
        objects.put(name, file)
    assert [(each.name, each.bytes) for each in objects.below("runs/r 1")] == [("runs/r 1/b", 9), (NAME, 9)]
    assert len(objects.below("")) == 4
    assert all(before < each.changed_at < time.time() + 5 for each in objects.below(""))


def test_removed_object_is_missing(objects: ObjectStore, file: Path, tmp_path: Path) -> None:
    objects.put("a", file)
    assert objects.remove(["a", "b"]) == 1
    assert objects.find("a") is None
    for call in (lambda: objects.read("a"), lambda: objects.get("a", tmp_path / "copy")):
        with pytest.raises(
            MissingObjectError, match=f"cannot read a: it is not in the object store {objects.url}"
        ):
            call()


@pytest.mark.parametrize("name", ["", "/etc/passwd", "a/../b", "a//b", "..", "a/."])
def test_name_outside_of_the_store_is_refused(objects: ObjectStore, file: Path, name: str) -> None:
    with pytest.raises(InfraError, match="is not the name of an object"):
        objects.put(name, file)


def test_probe_leaves_nothing(objects: ObjectStore, tmp_path: Path) -> None:
    objects.probe(tmp_path / "home")
    assert objects.below("") == []
    assert [path for path in (tmp_path / "home").rglob("*") if path.is_file()] == []


def test_interrupted_write_of_a_folder_leaves_no_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = ObjectStore(f"file://{tmp_path}")
    file = tmp_path / "file"
    file.write_text("whole")

    def half(self: Any, path: str, target: str, **_: Any) -> None:
        Path(target).write_text("wh")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(fsspec.get_filesystem_class("file"), "put_file", half)
    with pytest.raises(InfraError, match=r"cannot write a/b in the object store .*: No space left on device"):
        objects.put("a/b", file)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [file]


def test_old_object_in_use_is_written_again(
    objects: ObjectStore, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    put = ObjectStore.put
    monkeypatch.setattr(ObjectStore, "put", lambda self, name, file: written.append(name) or put(self, name, file))
    for fresh_s in (60.0, 60.0, -60.0):
        objects.keep("a", file, fresh_s=fresh_s)
    assert written == ["a", "a"]
    file.write_text("longer than before\n")
    objects.keep("a", file, fresh_s=60)
    assert written == ["a", "a", "a"], "the first one was incomplete"


def test_missing_folder_is_an_unmounted_file_system(tmp_path: Path, file: Path) -> None:
    objects = ObjectStore(f"file://{tmp_path}/nowhere")
    for call in (lambda: objects.put("a", file), lambda: objects.below(""), lambda: objects.read("a")):
        with pytest.raises(InfraError, match="nowhere does not exist on this machine"):
            call()
    assert not (tmp_path / "nowhere").exists()


def test_refused_access_is_reported(broken: Callable[..., Broken]) -> None:
    system = broken(PermissionError(13, "Permission denied"))
    with pytest.raises(
        InfraError, match="cannot look up a in the object store s3://b: no permission: Permission denied"
    ):
        ObjectStore("s3://b").find("a")
    assert system.calls == 1, "another attempt is refused, too"


def test_error_that_passes_is_retried(broken: Callable[..., Broken]) -> None:
    system = broken(ConnectionError("reset"), OSError(5, "Input/output error"))
    assert ObjectStore("s3://b").find("a")
    assert system.calls == 3


def test_error_that_stays_is_reported_with_its_kind(broken: Callable[..., Broken]) -> None:
    broken(*[RuntimeError("AWS_SECRET_ACCESS_KEY=hidden\nmore") for _ in range(9)])
    with pytest.raises(InfraError) as caught:
        ObjectStore("s3://b/c").find("a")
    assert caught.value.message.startswith("cannot look up a in the object store s3://b/c: RuntimeError: ")
    assert "hidden" not in str(caught.value)
    assert caught.value.passing


def test_store_that_does_not_respond_has_a_deadline(
    broken: Callable[..., Broken], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(threading.Event().wait)
    monkeypatch.setattr(module, "REQUEST_S", 0.2)
    with pytest.raises(
        InfraError, match=r"cannot look up a in the object store s3://b: no response within 0\.2 s"
    ):
        ObjectStore("s3://b").find("a")


def test_package_of_a_service_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> Any:
        raise ImportError("Install s3fs to access S3", name="s3fs")

    monkeypatch.setattr(module, "_file_system", missing)
    with pytest.raises(ConfigError, match=r"TIPCFLOW_STORE(.|\n)*pip install 'tipcflow\[s3\]'"):
        ObjectStore("s3://b").find("a")


def test_store_is_that_of_the_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIPCFLOW_STORE", "")
    assert object_store() is None
    monkeypatch.setenv("TIPCFLOW_STORE", f"file://{tmp_path}/")
    found = object_store()
    assert found is not None
    assert found.url == f"file://{tmp_path}"
