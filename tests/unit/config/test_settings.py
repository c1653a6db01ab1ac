import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tipcflow.config.settings as module
from tipcflow.config.settings import WEEKLY_CRON, Settings, safe_url
from tipcflow.domain import ConfigError


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Settings]:
    """Settings of an environment and a working directory."""

    def settings(environ: dict[str, str], folder: Path = tmp_path) -> Settings:
        for name in os.environ:
            if name.startswith("TIPCFLOW_"):
                monkeypatch.delenv(name)
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(folder)
        return module.settings()

    return settings


def test_home_of_a_user_is_the_default(settings: Callable[..., Settings], tmp_path: Path) -> None:
    found = settings({"HOME": str(tmp_path / "me")}, tmp_path)
    assert found.home == tmp_path / "me" / ".tipcflow"
    assert found.database_url == f"sqlite:///{tmp_path}/me/.tipcflow/tipcflow.db"
    assert found.runs_dir == found.home / "runs"


@pytest.mark.parametrize(
    ("text", "is_checkout"),
    [
        ('[project]\nname = "tipcflow"\n', True),
        ('[project]\nname = "other"\n', False),
        ('project = "tipcflow"\n', False),
        ("not toml [", False),
    ],
)
def test_home_is_inside_a_checkout(
    settings: Callable[..., Settings], tmp_path: Path, text: str, is_checkout: bool
) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    found = settings({"HOME": "/elsewhere"}, tmp_path)
    assert found.home == (tmp_path / ".tipcflow" if is_checkout else Path("/elsewhere/.tipcflow"))


def test_variables_win_and_empty_ones_are_unset(settings: Callable[..., Settings], tmp_path: Path) -> None:
    environ = {
        "HOME": "/me",
        "TIPCFLOW_HOME": "here",
        "TIPCFLOW_DATABASE_URL": "postgresql://u@h/d",
        "TIPCFLOW_CONFIG_DIR": "/etc/tipcflow",
    }
    found = settings(environ, tmp_path)
    assert (found.home, found.database_url) == (tmp_path / "here", "postgresql://u@h/d")
    assert found.config_dir == Path("/etc/tipcflow")
    assert settings(dict.fromkeys(environ, "") | {"HOME": "/me"}, tmp_path).home == Path("/me/.tipcflow")


def test_configs_of_the_folder_precede_configs_of_the_checkout(
    settings: Callable[..., Settings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "checkout"
    monkeypatch.setattr(module, "__file__", str(checkout / "src/tipcflow/config/settings.py"))
    here = tmp_path / "here"
    here.mkdir()
    assert settings({}, here).config_dir == here / "configs"
    (checkout / "configs").mkdir(parents=True)
    assert settings({}, here).config_dir == checkout / "configs"
    (here / "configs").mkdir()
    assert settings({}, here).config_dir == here / "configs"


def test_wrong_values_are_named(settings: Callable[..., Settings], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name in ("TIPCFLOW_HOME", "TIPCFLOW_CONFIG_DIR"):
        with pytest.raises(ConfigError, match=f"{name}: not a folder; found 'file'; expected a folder"):
            settings({name: "file"}, tmp_path)
    with pytest.raises(ConfigError, match="TIPCFLOW_DATABASE_URL: not a database URL") as caught:
        settings({"TIPCFLOW_DATABASE_URL": "mysql://me:hunter2@h/d"}, tmp_path)
    assert "hunter2" not in str(caught.value)


def test_printed_settings_contain_no_password(settings: Callable[..., Settings], tmp_path: Path) -> None:
    found = settings({"TIPCFLOW_DATABASE_URL": "postgresql://me:hunter2@h/d"}, tmp_path)
    assert "hunter2" not in f"{found} {found!r}"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:s3cr%40t@db:5432/x", "postgresql://me:***@db:5432/x"),
        ("postgresql://me:a:b@c@db/x", "postgresql://me:***@db/x"),
        ("postgresql://me@db/x", "postgresql://me@db/x"),
        ("postgresql:///x?host=/run/pg&password=s3cret", "postgresql:///x?host=/run/pg&password=***"),
        ("sqlite:////var/lib/x.db", "sqlite:////var/lib/x.db"),
        ("sqlite:///x.db", "sqlite:///x.db"),
        ("postgresql://me:s3cret@[broken/x", "postgresql:…"),
        ("", ""),
    ],
)
def test_safe_url_hides_the_password(url: str, shown: str) -> None:
    assert safe_url(url) == shown


@given(st.text(max_size=40))
def test_safe_url_never_fails(text: str) -> None:
    safe_url(text)


@given(st.text(alphabet=st.characters(exclude_characters="/?#", codec="ascii"), min_size=6, max_size=20))
def test_safe_url_never_shows_a_password(password: str) -> None:
    assert f":{password}@" not in safe_url(f"postgresql://me:{password}@db/x")


def test_limit_of_logs_is_configurable(settings: Callable[..., Settings], tmp_path: Path) -> None:
    assert settings({"HOME": "/me"}, tmp_path).log_limit_mb == 8000
    assert settings({"HOME": "/me", "TIPCFLOW_LOG_LIMIT_MB": "64"}, tmp_path).log_limit_mb == 64
    with pytest.raises(ConfigError, match="TIPCFLOW_LOG_LIMIT_MB: invalid value; found 'none'"):
        settings({"HOME": "/me", "TIPCFLOW_LOG_LIMIT_MB": "none"}, tmp_path)


@pytest.mark.parametrize("field", sorted(Settings.model_fields))
def test_every_empty_variable_is_unset(settings: Callable[..., Settings], tmp_path: Path, field: str) -> None:
    unset = settings({"HOME": "/me"}, tmp_path)
    assert settings({"HOME": "/me", f"TIPCFLOW_{field.upper()}": ""}, tmp_path) == unset


def test_numbers_of_the_queue_are_configurable(settings: Callable[..., Settings], tmp_path: Path) -> None:
    found = settings({"HOME": "/me"}, tmp_path)
    assert (found.weekly_at_once, found.queue_rise_s) == (16, 1800.0)
    chosen = {"HOME": "/me", "TIPCFLOW_WEEKLY_AT_ONCE": "3", "TIPCFLOW_QUEUE_RISE_S": "2.5"}
    assert (settings(chosen, tmp_path).weekly_at_once, settings(chosen, tmp_path).queue_rise_s) == (3, 2.5)


@pytest.mark.parametrize("wrong", ["0", "-1", "nan", "inf", "1e999", "many", "1.5"])
def test_a_number_that_cannot_be_is_refused(settings: Callable[..., Settings], wrong: str, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"TIPCFLOW_WEEKLY_AT_ONCE: invalid value; found .*expected a whole number of at least 1"
    ):
        settings({"HOME": "/me", "TIPCFLOW_WEEKLY_AT_ONCE": wrong}, tmp_path)


@pytest.mark.parametrize("wrong", ["0", "-1", "nan", "inf", "1e999", "many"])
def test_a_number_of_seconds_that_cannot_be_is_refused(settings: Callable[..., Settings], wrong: str) -> None:
    with pytest.raises(
        ConfigError, match=r"TIPCFLOW_QUEUE_RISE_S: invalid value; found .*expected a number of at"
    ):
        settings({"TIPCFLOW_QUEUE_RISE_S": wrong})


@pytest.mark.parametrize(
    "text", [WEEKLY_CRON, "* * * * *", "*/5 0-23/2 1,15 jan-MAR sun", "0 0 31 12 7", "0 20 * * mon-fri,SAT"]
)
def test_a_schedule_is_a_cron_expression(settings: Callable[..., Settings], text: str) -> None:
    found = settings({"TIPCFLOW_WEEKLY_CRON": f"  {text.replace(' ', '   ')} "})
    assert found.weekly_cron == text


@pytest.mark.parametrize(
    "text",
    [
        "sometimes",
        "@weekly",
        "0 20 * *",
        "0 0 20 * * 6",
        "60 20 * * 6",
        "0 24 * * 6",
        "0 20 0 * 6",
        "0 20 * 13 6",
        "0 20 * * 8",
        "0 20 * * satur",
        "*/0 20 * * 6",
        "*-5 20 * * 6",
        "0, 20 * * 6",
        "٣ 20 * * 6",
        "-1 20 * * 6",
    ],
)
def test_another_schedule_is_one_error(settings: Callable[..., Settings], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings({"TIPCFLOW_WEEKLY_CRON": text})
    assert str(caught.value) == (
        f"TIPCFLOW_WEEKLY_CRON: not a cron expression; found {text!r}; expected minute, hour, day of the month, "
        "month, day of the week, for example '0 20 * * 6'"
    )


def test_the_docs_have_the_default_schedule(settings: Callable[..., Settings]) -> None:
    assert settings({}).weekly_cron == settings({"TIPCFLOW_WEEKLY_CRON": ""}).weekly_cron == WEEKLY_CRON
    page = Path(__file__).parents[3] / "docs" / "reference" / "configuration.md"
    row = next(line for line in page.read_text().splitlines() if line.startswith("| `TIPCFLOW_WEEKLY_CRON`"))
    assert f"| `{WEEKLY_CRON}`: Saturday 20:00 |" in row


def test_a_folder_that_becomes_a_checkout_changes_the_default_home(
    settings: Callable[..., Settings], tmp_path: Path
) -> None:
    assert settings({"HOME": "/me"}, tmp_path).home == Path("/me/.tipcflow")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "tipcflow"\n')
    assert settings({"HOME": "/me"}, tmp_path).home == tmp_path / ".tipcflow"


def test_settings_are_read_once_per_environment(
    settings: Callable[..., Settings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan reads the settings several times; reading the file each time made planning six times as slow."""
    first = settings({"HOME": "/me"}, tmp_path)
    assert settings({"HOME": "/me"}, tmp_path) is first
    assert settings({"HOME": "/me", "TIPCFLOW_WEEKLY_AT_ONCE": "3"}, tmp_path).weekly_at_once == 3


@pytest.mark.parametrize("url", ["file:///srv/store", "s3://bucket", "s3://bucket/a/b"])
def test_object_store_is_a_folder_or_a_bucket(settings: Callable[..., Settings], url: str) -> None:
    assert settings({"TIPCFLOW_STORE": f"{url}/"}).store == url
    assert settings({"TIPCFLOW_STORE": ""}).store is None


@pytest.mark.parametrize(
    ("url", "reason", "shown"),
    [
        ("s3://AKIA123:hidden@bucket/a", "contains a login", "s3://***@bucket/a"),
        ("s3://hidden@bucket", "contains a login", "s3://***@bucket"),
        ("s3://key:hidden", "contains a login", "s3://key:***"),
        ("s3://bucket/a?secret=hidden", "contains a login", "s3://bucket/a"),
        ("file://hidden@host/a", "contains a login", "file://***@host/a"),
        ("file://srv/store", "not an absolute folder", "file://srv/store"),
        ("file:///", "not an absolute folder", "file:///"),
        ("s3:///a", "names no bucket", "s3:///a"),
        ("/srv/store", "not the URL of an object store", "/srv/store"),
        ("file:/srv", "not the URL of an object store", "file:/srv"),
        ("ftp://host/a", "not the URL of an object store", "ftp://host/a"),
        ("memory://a", "not the URL of an object store", "memory://a"),
    ],
)
def test_invalid_object_store_is_refused_without_its_secret(
    settings: Callable[..., Settings], url: str, reason: str, shown: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        settings({"TIPCFLOW_STORE": url})
    assert reason in str(caught.value)
    assert shown in str(caught.value)
    assert "hidden" not in str(caught.value)
    assert "file:///absolute/folder or s3://bucket/folder" in str(caught.value)
