import gzip
import hashlib
import os
from pathlib import Path

import pytest

from tipcflow.execute.collect.log_archive import LEAST, compress_logs, content_hash, is_kept, open_kept

TEXT = b"[Epoch 1, iter: 0] loss: 2.5\n" * 4000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    node = tmp_path / "train" / "node-a"
    for name in ("logs/main.log", "files/log/workerlog.0", "files/weights.pdparams", "samples.jsonl"):
        (node / name).parent.mkdir(parents=True, exist_ok=True)
        (node / name).write_bytes(TEXT)
    (node / "logs" / "short.log").write_bytes(TEXT[: LEAST - 1])
    (tmp_path / "events.jsonl").write_bytes(TEXT)
    (node / "logs" / "link.log").symlink_to(tmp_path / "events.jsonl")
    return tmp_path


def _names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_only_large_logs_of_nodes_are_compressed(folder: Path) -> None:
    assert compress_logs(folder) == 3
    assert _names(folder) == [
        "events.jsonl",
        "train/node-a/files/log/workerlog.0.gz",
        "train/node-a/files/weights.pdparams",
        "train/node-a/logs/link.log",
        "train/node-a/logs/main.log.gz",
        "train/node-a/logs/short.log",
        "train/node-a/samples.jsonl.gz",
    ]
    assert compress_logs(folder) == 0


def test_a_log_reads_the_same_before_and_after(folder: Path) -> None:
    log = folder / "train" / "node-a" / "logs" / "main.log"
    os.utime(log, (1_000_000_000, 1_000_000_000))
    before = content_hash(log)
    assert before == hashlib.sha256(TEXT).hexdigest()
    compress_logs(folder)
    assert is_kept(log)
    assert content_hash(log) == before
    zipped = log.with_name("main.log.gz")
    assert zipped.stat().st_mtime == 1_000_000_000
    for path in (log, zipped):
        with open_kept(path) as file:
            assert file.read() == TEXT
    assert content_hash(zipped) == hashlib.sha256(zipped.read_bytes()).hexdigest()


def test_interrupted_compression_is_repeated(folder: Path) -> None:
    """What it left is replaced; the log itself is there until the compressed one is whole."""
    log = folder / "train" / "node-a" / "logs" / "main.log"
    log.with_name("main.log.gz").write_bytes(gzip.compress(TEXT)[:50])
    assert compress_logs(folder) == 3
    with open_kept(log) as file:
        assert file.read() == TEXT


def test_missing_log_is_an_error(folder: Path) -> None:
    assert not is_kept(folder / "nothing.log")
    with pytest.raises(FileNotFoundError):
        open_kept(folder / "nothing.log")
