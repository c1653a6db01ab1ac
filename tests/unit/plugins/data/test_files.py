"""Files of a run's folder: what is listed, what may be read, and the end of a log as text."""

import gzip
from pathlib import Path

import pytest

from tipcflow_pages.data.files import masked, readable, run_files, run_folder, step_folder, tail


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "train/b/logs/main.log": "trained\n",
        "train/a/logs/main.log": "trained\n",
        "train/a/model.pdparams": "weights",
        "train/a/record.json": "{}",
        "train/a/launch.sh": "export TOKEN=1\n",
        "plan.json": "{}",
    }
    made = tmp_path / "runs" / "r1"
    for name, text in files.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    return made


def test_folder_of_a_run_is_found_by_its_id_alone(folder: Path, tmp_path: Path) -> None:
    assert run_folder(tmp_path, "r1") == folder
    for wrong in ("r2", "../runs/r1", "r1/train", "", "."):
        assert run_folder(tmp_path, wrong) is None, wrong
    (tmp_path / "runs" / "link").symlink_to(folder)
    assert run_folder(tmp_path, "link") is None


def test_step_id_is_a_folder_name() -> None:
    assert "/" not in step_folder("norm_train/infer_cpu")
    assert step_folder("\ud800") == ""


def test_files_are_listed_by_step_and_node_logs_first(folder: Path) -> None:
    found = run_files(folder)
    assert {one.step for one in found} == {"train"}, "a file of the run itself is not a file of a step"
    assert next(one.name for one in found if one.node == "a") == "logs/main.log"
    assert [one.node for one in found] == sorted(one.node for one in found)
    weights = next(one for one in found if one.name == "model.pdparams")
    assert (weights.readable, weights.is_log, weights.bytes) == (False, False, 7)


def test_link_is_neither_listed_nor_read(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.log").write_text("outside\n")
    (folder / "train" / "a" / "logs" / "link.log").symlink_to(tmp_path / "outside.log")
    (folder / "train" / "linked").symlink_to(tmp_path)
    assert not any("link" in one.path for one in run_files(folder))
    assert readable(folder, "train/a/logs/link.log") is None
    assert readable(folder, "train/linked/outside.log") is None


@pytest.mark.parametrize(
    "path",
    [
        "", "/etc/hostname", "train/../train/a/logs/main.log", "../r1/plan.json", "train/a/model.pdparams",
        "train/a", "train/a/none.log", "train/a/logs/main.log\0", "a/" * 3000,
    ],
)  # fmt: skip
def test_other_paths_are_not_read(folder: Path, path: str) -> None:
    assert readable(folder, path) is None


def test_log_is_read(folder: Path) -> None:
    assert readable(folder, "train/a/logs/main.log") == folder / "train/a/logs/main.log"


def test_end_of_a_log_is_text_without_escapes_and_secrets(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"\x1b[31mred\x1b[0m\x07\rpassword=hunter2secret\n\xff\n")
    shown = tail(log)
    assert "red" in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "hunter2secret" not in shown


def test_a_long_log_states_how_much_is_omitted(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("x" * 90 + "the end\n")
    assert tail(log, most=8) == "… the first 90 B are in the download …\nthe end\n"
    packed = tmp_path / "b.log.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    assert tail(packed, most=8) == tail(log, most=8)


def test_the_end_of_a_log_begins_with_a_whole_line(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("one\ntwo\nthree\n")
    assert tail(log, most=8) == "… the first 8 B are in the download …\nthree\n"
    assert tail(log, most=6) == "… the first 8 B are in the download …\nthree\n"


@pytest.mark.parametrize("most", range(1, 140, 3))
@pytest.mark.parametrize(
    "line", ["AWS_SECRET_ACCESS_KEY=XXXXXXXX", "https://ci:XXXXXXXX@host/", "password: a b XXXX"]
)
def test_secret_cut_by_the_beginning_of_the_end_is_masked(tmp_path: Path, line: str, most: int) -> None:
    log = tmp_path / "a.log"
    for text in (f"{line} {'y' * 50}\n", f"{line}\n{'y' * 50}\n", f"{line}{'y' * 50}"):
        log.write_text(text)
        assert "XX" not in tail(log, most=most)


@pytest.mark.parametrize("most", range(20, 400, 7))
@pytest.mark.parametrize("last", ["-----END RSA PRIVATE KEY-----\nafter\n", ""])
def test_private_key_cut_by_the_beginning_of_the_end_is_hidden(tmp_path: Path, last: str, most: int) -> None:
    log = tmp_path / "a.log"
    key = "".join(f"MIIE{number}XXXX\n" for number in range(20))
    log.write_text(
        f"before\n-----BEGIN RSA PRIVATE KEY-----\n{key}-----END RSA PRIVATE KEY-----\nafter\nthe end\n"
    )
    shown = tail(log, most=most)
    assert "XX" not in shown
    assert shown.endswith("the end\n")


def test_private_key_without_its_beginning_is_hidden(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("MIIEXXXX\n" * 3_000 + "-----END RSA PRIVATE KEY-----\nafter\n")
    assert tail(log, most=200).endswith("\n*** -----END RSA PRIVATE KEY-----\nafter\n")


def test_download_keeps_all_bytes_but_a_colored_secret(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"\x1b[36mDB_PASSWORD\x1b[0m=\x1b[33mhunter2\x1b[0m \xff\r\n\x1b[1mloss\x1b[0m: 1")
    expected = b"\x1b[36mDB_PASSWORD\x1b[0m=\x1b[33m***\x1b[0m \xff\r\n\x1b[1mloss\x1b[0m: 1"
    assert b"".join(masked(log)) == expected


def test_damaged_compressed_log_is_named(tmp_path: Path) -> None:
    packed = tmp_path / "b.log.gz"
    packed.write_bytes(gzip.compress(b"text" * 1000)[:-9])
    assert tail(packed).startswith("… the file cannot be unpacked: ")
