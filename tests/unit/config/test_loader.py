"""A wrong YAML file gives one error that names file, line, key, what was found and what was expected."""

import math
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from tipcflow.config.loader import load_yaml, parse_yaml
from tipcflow.config.policy import AccuracyRule, Floors, LossRule, MetricRule, ParityRule, Policy
from tipcflow.config.suite import Suite, load_suite
from tipcflow.domain import Cluster, ConfigError

GOOD = """name: lab
nodes:
  - name: a
    address: 10.0.0.1
    python: /usr/bin/python3
    workspace: /var/lib/tipcflow
"""


def test_valid_file_is_loaded() -> None:
    cluster = parse_yaml(GOOD, Cluster, file="lab.yaml")
    assert cluster.node("a").slots == 1


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        (GOOD + "    slotz: 2\n", 7, "nodes.0.slotz", ["unknown key", "'2'", "slots"]),
        (GOOD + "    slots: none\n", 7, "nodes.0.slots", ["a whole number", "'none'"]),
        (GOOD + "    slots: 0\n", 7, "nodes.0.slots", ["at least 1"]),
        (GOOD.replace("    address: 10.0.0.1\n", ""), 3, "nodes.0.address", ["required"]),
        (GOOD + "    address: 10.0.0.2\n", 7, "address", ["duplicate key"]),
        (
            GOOD.replace("/usr/bin/python3", "python3"),
            5,
            "nodes.0.python",
            ["'python3'", "expected an absolute path"],
        ),
        ("name: [", 1, "", ["is not YAML"]),
        ("", 0, "", ["is empty"]),
    ],
)
def test_invalid_file_is_an_error_with_its_line(text: str, line: int, key: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, Cluster, file="lab.yaml")
    assert caught.value.file == "lab.yaml"
    assert caught.value.line == line
    assert caught.value.key == key
    for word in words:
        assert word in str(caught.value)


def test_a_rule_for_several_keys_speaks_in_its_own_words() -> None:
    text = "name: toy\nfolder: /toy\ngit: https://git.example/toy\ndialects: [models/template]\n"
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, Suite, file="toy.yaml")
    assert str(caught.value).startswith("toy.yaml:1: give either folder or git")
    assert "{" not in str(caught.value)


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_yaml(tmp_path / "no.yaml", Cluster)


def test_further_errors_are_counted() -> None:
    text = GOOD + "    slots: 0\n    device: tpu\n"
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, Cluster, file="lab.yaml")
    words = (
        "lab.yaml:7: nodes.0.slots: invalid value in node 'a' (1 more: nodes.0.device: invalid value); found '0'"
    )
    assert str(caught.value).startswith(words)


def test_only_some_further_errors_are_shown() -> None:
    text = GOOD + "    slots: 0\n" + "".join(f"    x{number}: 1\n" for number in range(5))
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, Cluster, file="lab.yaml")
    shown = "; ".join(f"nodes.0.x{number}: unknown key" for number in range(3))
    assert f"(5 more: {shown}; 2 others)" in str(caught.value)


def test_misspelled_key_comes_before_the_missing_one() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(GOOD.replace("address:", "adress:"), Cluster, file="lab.yaml")
    first, hint = str(caught.value).splitlines()
    assert first.startswith(
        "lab.yaml:4: nodes.0.adress: unknown key in node 'a' (1 more: nodes.0.address: is required); found"
    )
    assert hint == "  hint: did you mean address?"


def test_words_of_a_validator_are_followed_by_the_item() -> None:
    text = GOOD + "    container: {image: i, python: /p, args: [-d]}\n"
    with pytest.raises(ConfigError, match=r"tipcflow sets it \(node 'a'\); found"):
        parse_yaml(text, Cluster, file="lab.yaml")


def _suite(folder: Path, text: str) -> Path:
    configs = folder / "configs"
    (configs / "suites").mkdir(parents=True)
    (configs / "suites" / "sample.yaml").write_text(text)
    return configs


def test_suite_folder_is_relative_to_the_parent_of_configs(tmp_path: Path) -> None:
    configs = _suite(tmp_path, "name: sample\nfolder: models/x\ndialects: [models/template]\n")
    assert load_suite("sample", configs).folder == str(tmp_path / "models/x")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "dialects: [d]\nlog_format: modells\n",
            "4: log_format: is not a format of training logs; found 'modells'; expected one of auto, clas,",
        ),
        ("name: other\n", "3: name: is not the name of the file; found 'other'; expected sample"),
    ],
)
def test_name_and_log_format_are_checked_at_loading(tmp_path: Path, text: str, words: str) -> None:
    start = "folder: .\ndialects: [d]\n" if "name" in text else "name: sample\nfolder: .\n"
    configs = _suite(tmp_path, start + text)
    with pytest.raises(ConfigError) as caught:
        load_suite("sample", configs)
    result = str(caught.value)
    assert result.startswith(f"{configs / 'suites' / 'sample.yaml'}:{words}")
    assert result.endswith("hint: did you mean models?") == ("log_format" in text)


def test_suite_file_outside_of_the_configuration_has_any_name(tmp_path: Path) -> None:
    file = tmp_path / "draft.yaml"
    file.write_text("name: sample\nfolder: .\ndialects: [d]\n")
    assert load_suite(str(file), tmp_path / "configs").name == "sample"


def test_unknown_suite_lists_the_known_ones(tmp_path: Path) -> None:
    configs = _suite(tmp_path, "name: sample\nfolder: x\ndialects: [models/template]\n")
    with pytest.raises(ConfigError, match=r"unknown suite; found 'other'; expected one of sample"):
        load_suite("other", configs)


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ("git: https://example.invalid/x.git\n", "either folder or git"),
        ('seed_argument: "--seed"\n', "contain {seed}"),
        ("budget_minutes: .inf\n", "finite"),
        ("budget_minutes: .nan\n", "finite"),
        ("subfolder: ../y\n", "inside of the folder or clone"),
        ("subfolder: /y\n", "inside of the folder or clone"),
        ("whole_repository: true\n", "whole_repository needs subfolder"),
        ("subfolder: ./\nwhole_repository: true\n", "whole_repository needs subfolder"),
    ],
)
def test_invalid_suite_is_an_error(extra: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_yaml("name: s\nfolder: x\ndialects: [d]\n" + extra, Suite, file="s.yaml")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://bot:hidden@host/x.git", "https://***@host/x.git"),
        ("https://hidden@host:8443/x.git", "https://***@host:8443/x.git"),
        ("HTTPS://bot:hid@hidden@host/x.git", "HTTPS://***@host/x.git"),
        ("ssh://git:hidden@host/x.git", "ssh://***@host/x.git"),
    ],
)
def test_login_in_a_git_url_is_refused_without_its_secret(tmp_path: Path, url: str, shown: str) -> None:
    configs = _suite(tmp_path, f"name: sample\ndialects: [models/template]\ngit: {url}\n")
    with pytest.raises(ConfigError) as caught:
        load_suite("sample", configs)
    file = configs / "suites" / "sample.yaml"
    assert str(caught.value).splitlines() == [
        f"{file}:3: git: the URL contains a login, which each run would store; found {shown!r};"
        " expected a URL without a login",
        "  hint: git on this machine adds the login, for example from ~/.netrc (docs/reference/configuration.md)",
    ]
    assert "hidden" not in repr(vars(caught.value))


@pytest.mark.parametrize(
    ("line", "key", "shown"),
    [
        (
            "data: [{to: d, url: 'https://bot:hidden@host/d.tar', sha256: '%s'}]",
            "data.0.url",
            "https://***@host/d.tar",
        ),
        ("packages: [numpy, 'x @ git+https://hidden@host/x']", "packages.1", "x @ git+https://***@host/x"),
        (
            "cases: [{device: cpu, packages: ['x @ https://a:hidden@host/x.whl']}]",
            "cases.0.packages.0",
            "x @ https://***@host/x.whl",
        ),
    ],
)
def test_login_in_a_url_of_data_or_packages_is_refused(tmp_path: Path, line: str, key: str, shown: str) -> None:
    text = f"name: sample\nfolder: .\ndialects: [models/template]\n{line.replace('%s', '0' * 64)}\n"
    configs = _suite(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_suite("sample", configs)
    start = f"{configs / 'suites' / 'sample.yaml'}:4: {key}: the URL contains a login, which each run would store"
    assert str(caught.value).startswith(f"{start}; found {shown!r};")
    assert "hidden" not in repr(vars(caught.value))


def test_package_of_a_repository_over_ssh_is_accepted(tmp_path: Path) -> None:
    package = "x @ git+ssh://git@host/x.git"
    configs = _suite(tmp_path, f"name: sample\nfolder: .\ndialects: [d]\npackages: ['{package}']\n")
    assert load_suite("sample", configs).packages == (package,)


@pytest.mark.parametrize(
    "url",
    [
        "git@host:group/x.git",
        "ssh://git@host:2222/group/x.git",
        "https://host/group/x.git",
        "https://host/@group/x.git",
        "/srv/git/x.git",
    ],
)
def test_git_url_without_a_secret_is_accepted(tmp_path: Path, url: str) -> None:
    configs = _suite(tmp_path, f"name: sample\ngit: '{url}'\ndialects: [models/template]\n")
    assert load_suite("sample", configs).git == url


def test_suite_that_an_earlier_run_stored_with_a_login_is_read() -> None:
    url = "https://bot:hidden@host/x.git"
    assert Suite.model_validate({"name": "s", "git": url, "dialects": ["d"]}).git == url


@pytest.mark.parametrize("model", [Policy, Floors, MetricRule, ParityRule, LossRule, AccuracyRule])
def test_no_number_of_a_policy_may_be_infinite(model: type[BaseModel]) -> None:
    """No value exceeds an infinite limit, and NaN compares false with every value."""
    numbers = [name for name, field in model.model_fields.items() if "float" in str(field.annotation)]
    assert numbers
    for name in numbers:
        for value in (math.inf, math.nan):
            with pytest.raises(ValidationError, match=name):
                model.model_validate({name: value})
