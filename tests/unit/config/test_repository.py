"""Files of configs/repositories: what is declared, and what is wrong with file and line."""

from pathlib import Path

import pytest

from tipcflow.config.repository import Approvers, Repositories, load_repositories
from tipcflow.domain import ConfigError

TEXT = """name: PaddlePaddle/PaddleClas
connection: github_clas
suite: toy
cluster: two
budget:
  minutes: 60
approvers:
  users: [octocat]
selection:
  globs: {"ppcls/arch/**": ["toy/*/*"]}
builds:
  paddlepaddle: ["toy/*/*"]
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    for file in ("suites/toy", "clusters/two", "policies/pr", "policies/strict"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"{file}.yaml").write_text("name: x\n")
    (tmp_path / "repositories").mkdir()
    return tmp_path


def load(config: Path, **files: str) -> Repositories:
    for name, text in files.items():
        (config / "repositories" / f"{name}.yaml").write_text(text)
    return load_repositories(config)


def test_repository_file_declares_checks_and_connections(config: Path) -> None:
    found = load(config, clas=TEXT)
    (one,) = found
    assert (one.api_url, one.check, one.gate, one.forks, one.bot) == (
        "https://api.github.com",
        "tipcflow",
        "required",
        "approve",
        "tipcflow[bot]",
    )
    assert found.connections() == ("github_clas",)
    assert found.of("github_clas", "paddlepaddle/paddleclas") == one
    assert found.of("other", "PaddlePaddle/PaddleClas") is None


def test_no_folder_means_no_repository(tmp_path: Path) -> None:
    assert list(load_repositories(tmp_path)) == []


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("name: PaddlePaddle/PaddleClas", "name: PaddleClas", 1, "name"),
        ("suite: toy", "suite: toys", 3, "expected one of toy"),
        ("cluster: two", "cluster: three", 4, "expected one of two"),
        ("cluster: two", "cluster: two\npolicy: lax", 5, "expected one of pr, strict"),
        ("cluster: two", "cluster: two\nsecret: x", 5, "secret"),
        ("minutes: 60", "minutes: 6", 5, "minutes_per_chain must be at most minutes"),
        ("minutes: 60", "minutes: .nan", 6, "finite"),
        ("cluster: two", "cluster: two\napi_url: http://x/api/v3", 5, "https address"),
        ("cluster: two", "cluster: two\napi_url: https://me:pw@x/api/v3", 5, "without login"),
        ("cluster: two", "cluster: two\napi_url: https://github.com", 5, "https://api.github.com"),
        ("paddlepaddle: [", "Paddle_Paddle: [", 12, "builds.Paddle_Paddle"),
        ('builds:\n  paddlepaddle: ["toy/*/*"]', "builds:\n  torch: []", 12, "expected at least 1 item(s)"),
        ("builds:\n  paddlepaddle: [", "builds:\n  - [", 11, "expected keys with values"),
        ("users: [octocat]", "permission: read", 8, "'write', 'maintain' or 'admin'"),
    ],
)
def test_invalid_repository_file_is_an_error_with_its_line(
    config: Path, old: str, new: str, line: int, words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(config, clas=TEXT.replace(old, new, 1))
    assert words in str(caught.value)
    assert f"clas.yaml:{line}:" in str(caught.value)


def test_two_files_with_one_repository_are_refused(config: Path) -> None:
    with pytest.raises(ConfigError, match=r"second\.yaml:1: name: first\.yaml has the same repository"):
        load(config, first=TEXT, second=TEXT.replace("PaddlePaddle/", "paddlepaddle/"))


def test_same_name_on_two_servers_is_refused(config: Path) -> None:
    """Attempts, approvals and messages are stored by the name."""
    ghes = TEXT.replace("github_clas", "ghes") + "api_url: https://git.example.com/api/v3/\n"
    with pytest.raises(ConfigError, match=r"second\.yaml:1: name: first\.yaml has the same repository"):
        load(config, first=TEXT, second=ghes)


def test_two_servers_need_two_connections(config: Path) -> None:
    ghes = TEXT.replace("PaddlePaddle/", "Other/") + "api_url: https://git.example.com/api/v3/\n"
    with pytest.raises(ConfigError, match=r"second\.yaml:2: connection: first\.yaml uses this connection"):
        load(config, first=TEXT, second=ghes)
    found = load(config, second=ghes.replace("github_clas", "ghes"))
    assert {one.api_url for one in found} == {"https://api.github.com", "https://git.example.com/api/v3"}


def test_approvers_are_users_or_have_the_permission() -> None:
    rule = Approvers(permission="write", users=("Octocat",))
    assert rule.allow("me", "write")
    assert rule.allow("me", "admin")
    assert rule.allow("octocat", "none")
    assert not rule.allow("me", "triage")
    assert not rule.allow("me", "")
    assert not rule.allow("", "none")
    assert not Approvers(permission="admin").allow("me", "maintain")
