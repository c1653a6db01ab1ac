"""Teams: files, quiet hours, digests."""

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tipcflow.config.teams.team import Digest, Quiet, Team, load_teams
from tipcflow.domain import ConfigError

BERLIN = "Europe/Berlin"


def at(text: str, zone: str = BERLIN) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def write(folder: Path, name: str, text: str) -> None:
    (folder / "teams").mkdir(exist_ok=True)
    (folder / "teams" / f"{name}.yaml").write_text(text)


def test_no_folder_means_no_teams(tmp_path: Path) -> None:
    assert load_teams(tmp_path) == ()


def test_teams_are_files(tmp_path: Path) -> None:
    write(
        tmp_path, "vision", "chains: ['PaddleClas/*']\nmail: {to: [a@example.org], sender: tipcflow@example.org}\n"
    )
    write(tmp_path, "all", "slack: chat\nkinds: [infrastructure]\n")
    every, vision = load_teams(tmp_path)
    assert (every.name, every.slack, every.kinds) == ("all", "chat", ("infrastructure",))
    assert (vision.owns("PaddleClas/x/y"), vision.owns("PaddleOCR/x/y")) == (True, False)
    assert vision.mail is not None
    assert vision.mail.connection == "smtp_default"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("chains: ['*']\n", "exactly one of mail, slack and webhook"),
        ("slack: a\nwebhook: b\n", "exactly one of mail, slack and webhook"),
        ("slack: a\nquiet: {start: '25:00'}\n", "quiet.start"),
        ("slack: a\nquiet: {timezone: Europe/Nowhere}\n", "a time zone such as Europe/Berlin"),
        ("slack: a\nkinds: [slow]\n", "kinds"),
        ("slack: a\ndigest: {day: someday}\n", "digest.day"),
        ("slack: a\nowner: me\n", "owner"),
        ("slack: a\nname: other\n", "is not the name of the file; found 'other'; expected vision"),
        ("mail: {to: [no-address], sender: a@b.example}\n", "mail.to"),
    ],
)
def test_an_invalid_file_is_named(tmp_path: Path, text: str, words: str) -> None:
    write(tmp_path, "vision", text)
    with pytest.raises(ConfigError) as error:
        load_teams(tmp_path)
    assert words in str(error.value)
    assert "teams/vision.yaml" in str(error.value)


@pytest.mark.parametrize(
    ("quiet", "time", "covered"),
    [
        (Quiet(), "2026-11-25T03:00", False),
        (Quiet(start="22:00", end="07:00", timezone=BERLIN), "2026-11-25T21:59", False),
        (Quiet(start="22:00", end="07:00", timezone=BERLIN), "2026-11-25T22:00", True),
        (Quiet(start="22:00", end="07:00", timezone=BERLIN), "2026-11-25T06:59", True),
        (Quiet(start="22:00", end="07:00", timezone=BERLIN), "2026-11-25T07:00", False),
        (Quiet(start="12:00", end="13:00", timezone=BERLIN), "2026-11-25T12:30", True),
        (Quiet(days=("saturday", "sunday"), timezone=BERLIN), "2026-11-28T12:00", True),
        (Quiet(days=("saturday", "sunday"), timezone=BERLIN), "2026-11-30T00:00", False),
    ],
)
def test_quiet_hours_cover_times(quiet: Quiet, time: str, covered: bool) -> None:
    assert quiet.covers(at(time)) is covered


def test_digest_is_due_from_its_day_until_sunday() -> None:
    team = Team(slack="a", digest=Digest(day="tuesday", after="09:00"), quiet=Quiet(timezone=BERLIN))
    assert team.digest_due(at("2026-11-24T08:59")) == ""
    assert team.digest_due(at("2026-11-24T09:00")) == "2026-W48"
    assert team.digest_due(at("2026-11-29T23:59")) == "2026-W48"
    assert team.digest_due(at("2026-11-30T10:00")) == ""
    assert Team(slack="a").digest_due(at("2026-11-24T09:00")) == ""
