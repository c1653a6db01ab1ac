"""A suite's files at a ref: the same bytes for the same files, and one clear error for what is not there."""

import io
import tarfile
from pathlib import Path

import pytest
from tests.support.bisections.repository import PARAMS, git, write_repository

from tipcflow.config.suite import Suite
from tipcflow.domain import ConfigError, InfraError
from tipcflow.execute.source.snapshot import Snapshot, git_error, take_snapshot


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return write_repository(tmp_path / "checkout")


def snapshot(root: Path, ref: str | None = None, params: str = PARAMS) -> Snapshot:
    suite = Suite(name="s", folder=str(root / "suite"), dialects=("d",))
    return take_snapshot(suite, params, ref, cache=root / "cache")


def members(found: Snapshot) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(found.archive)) as archive:
        return {member.name: member for member in archive}


def test_ref_gives_the_file_at_that_ref(repository: Path) -> None:
    old = snapshot(repository, "v1")
    assert old.params_text == "first\n"
    assert old.commit == git(repository, "rev-parse", "v1")
    assert snapshot(repository, "main").params_text == "second\n"


def test_equal_files_have_equal_hashes_without_git_times(repository: Path) -> None:
    at_ref = snapshot(repository, "main")
    now = snapshot(repository)
    assert at_ref.sha256 == now.sha256
    assert at_ref.commit == now.commit
    assert snapshot(repository, "v1").sha256 != now.sha256


def test_modes_links_and_names_survive(repository: Path) -> None:
    found = members(snapshot(repository, "main"))
    assert found["run.sh"].mode == 0o755
    assert found["link"].issym()
    assert found["link"].linkname == "run.sh"
    assert "größe ä.txt" in found


def test_local_changes_are_marked(repository: Path) -> None:
    (repository / "suite" / "new.py").write_text("print()\n")
    found = snapshot(repository)
    assert found.commit.endswith("+local")
    assert "new.py" in found.names


def test_params_can_be_a_path_on_the_controller(repository: Path) -> None:
    assert snapshot(repository, params=str(repository / "suite" / PARAMS)).params_file == PARAMS


def test_foreign_params_file_travels_along(repository: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("my own\n")
    found = snapshot(repository, "v1", params=str(mine))
    assert found.params_file.startswith("tipcflow_params/")
    assert found.params_file.endswith("/mine.txt")
    assert found.params_text == "my own\n"
    assert found.params_file in members(found)


@pytest.mark.parametrize(
    ("ref", "params", "words"),
    [
        ("v9", PARAMS, r"--suite-ref: the suite has no such ref; found 'v9'"),
        ("--upload-pack=x", PARAMS, "no such ref"),
        ("v1", "test_tipc/none.txt", "no such params file at v1; found 'test_tipc/none.txt'"),
        (None, "../outside.txt", "no such params file"),
        (None, "/does/not/exist.txt", "no such params file; found '/does/not/exist.txt'"),
    ],
)
def test_wrong_ref_or_file_is_refused(repository: Path, ref: str | None, params: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        snapshot(repository, ref, params)


def test_binary_params_file_is_refused(repository: Path) -> None:
    (repository / "suite" / PARAMS).write_bytes(b"ok\n\xff\xfe\n")
    with pytest.raises(ConfigError, match=r"train_infer_python.txt:2: is not UTF-8"):
        snapshot(repository)


def test_a_folder_without_git_is_packed(tmp_path: Path) -> None:
    (tmp_path / "suite" / "__pycache__").mkdir(parents=True)
    (tmp_path / "suite" / "__pycache__" / "x.pyc").write_bytes(b"x")
    (tmp_path / "suite" / "p.txt").write_text("p\n")
    found = snapshot(tmp_path, params="p.txt")
    assert found.commit == ""
    assert found.names == {"p.txt"}
    with pytest.raises(ConfigError, match="not a git checkout"):
        snapshot(tmp_path, "main", "p.txt")


def test_a_suite_can_have_a_git_url(repository: Path, tmp_path: Path) -> None:
    suite = Suite(name="s", git=f"file://{repository}", subfolder="suite", dialects=("d",))
    cache = tmp_path / "cache"
    assert take_snapshot(suite, PARAMS, None, cache=cache).params_text == "second\n"
    (repository / "suite" / PARAMS).write_text("third\n")
    git(repository, "commit", "-qam", "three")
    assert take_snapshot(suite, PARAMS, "main", cache=cache).params_text == "third\n"


def test_a_commit_that_no_branch_holds_comes_when_requested(repository: Path, tmp_path: Path) -> None:
    suite = Suite(name="s", git=f"file://{repository}", subfolder="suite", dialects=("d",))
    cache = tmp_path / "cache"
    take_snapshot(suite, PARAMS, None, cache=cache)
    git(repository, "checkout", "--quiet", "--detach")
    (repository / "suite" / PARAMS).write_text("from a fork\n")
    git(repository, "commit", "-qam", "a pull request")
    commit = git(repository, "rev-parse", "HEAD").strip()
    git(repository, "update-ref", "refs/pull/1/head", commit)
    git(repository, "checkout", "--quiet", "-")
    git(repository, "config", "uploadpack.allowAnySHA1InWant", "true")
    assert take_snapshot(suite, PARAMS, commit, cache=cache).params_text == "from a fork\n"
    with pytest.raises(ConfigError, match="no such ref"):
        take_snapshot(suite, PARAMS, "0" * 40, cache=cache)


def test_unreachable_git_url_is_an_infra_failure(tmp_path: Path) -> None:
    suite = Suite(name="s", git=f"file://{tmp_path}/nowhere", dialects=("d",))
    with pytest.raises(InfraError, match="git clone failed"):
        take_snapshot(suite, PARAMS, None, cache=tmp_path / "cache")


def test_params_by_the_names_that_a_chain_has(repository: Path) -> None:
    short = "/".join(PARAMS.split("/")[-2:])
    assert snapshot(repository, None, short).params_file == PARAMS
    other = repository / "suite" / "test_tipc" / "configs" / "other" / short
    other.parent.mkdir(parents=True)
    other.write_text("another\n")
    with pytest.raises(ConfigError, match=f"2 params files with that folder and name.*expected one of .*{PARAMS}"):
        snapshot(repository, None, short)


@pytest.mark.parametrize(
    ("output", "error"),
    [
        ("", "no message"),
        ("not git's words\n", "not git's words"),
        ("Cloning into 'x'...\nfatal: repository '/x' does not exist\n", "fatal: repository '/x' does not exist"),
        (
            "Cloning into 'x'...\nremote: Repository not found.\nfatal: repository 'https://h/x/' not found\n",
            "remote: Repository not found.; fatal: repository 'https://h/x/' not found",
        ),
        (
            "git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.\n\n"
            "Please make sure you have the correct access rights\nand the repository exists.\n",
            "git@h: Permission denied (publickey).; fatal: Could not read from remote repository.",
        ),
        (
            "error: unable to read sha1 file of a.bin\nfatal: unable to checkout working tree\n"
            "warning: Clone succeeded, but checkout failed.\n"
            "You can inspect what was checked out with 'git status'\n"
            "and retry with 'git restore --source=HEAD :/'\n",
            "error: unable to read sha1 file of a.bin; fatal: unable to checkout working tree",
        ),
    ],
)
def test_the_error_of_git_is_its_fatal_line_with_its_cause(output: str, error: str) -> None:
    assert git_error(output) == error


def test_clone_of_a_missing_repository_is_an_infra_failure(tmp_path: Path) -> None:
    suite = Suite(name="s", git=str(tmp_path / "absent"), dialects=("d",))
    with pytest.raises(InfraError, match=r"git clone failed: .*does not"):
        take_snapshot(suite, PARAMS, None, cache=tmp_path / "cache")


def whole(**source: str) -> Suite:
    return Suite(name="s", **source, subfolder="suite", whole_repository=True, dialects=("d",))  # type: ignore[arg-type]


def test_whole_repository_holds_the_files_around_the_suite(repository: Path, tmp_path: Path) -> None:
    (repository / "package").mkdir()
    (repository / "package" / "train.py").write_text("pass\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "a package beside the suite")
    by_url, by_folder = {"git": f"file://{repository}"}, {"folder": str(repository)}
    found = [
        take_snapshot(whole(**source), PARAMS, ref, cache=tmp_path / "cache")
        for source in (by_url, by_folder)
        for ref in ("main", None)
    ]
    assert len({one.sha256 for one in found}) == 1
    assert {f"suite/{PARAMS}", "suite/run.sh", "package/train.py"} <= members(found[0]).keys()
    assert {PARAMS, "run.sh", "../package/train.py"} <= found[0].names
    assert (found[0].params_file, found[0].params_text) == (PARAMS, "second\n")


def test_foreign_params_file_is_put_into_the_suites_root(repository: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("my own\n")
    found = take_snapshot(whole(folder=str(repository)), str(mine), None, cache=tmp_path / "cache")
    assert f"suite/{found.params_file}" in members(found)


def test_a_whole_repository_is_packed_without_git(tmp_path: Path) -> None:
    (tmp_path / "it" / "suite").mkdir(parents=True)
    (tmp_path / "it" / "suite" / "p.txt").write_text("p\n")
    (tmp_path / "it" / "beside.py").write_text("pass\n")
    found = take_snapshot(whole(folder=str(tmp_path / "it")), "p.txt", None, cache=tmp_path / "cache")
    assert found.names == {"p.txt", "../beside.py"}
    assert members(found).keys() == {"suite/p.txt", "beside.py"}


def test_subfolder_of_a_folder_is_the_root(repository: Path) -> None:
    suite = Suite(name="s", folder=str(repository), subfolder="suite", dialects=("d",))
    found = take_snapshot(suite, PARAMS, "main", cache=repository / "cache")
    assert found.sha256 == snapshot(repository, "main").sha256
