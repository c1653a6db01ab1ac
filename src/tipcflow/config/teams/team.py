"""Teams that are notified about their chains: `configs/teams/<name>.yaml`."""

from datetime import UTC, datetime, time, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from tipcflow.config.base import ConfigModel
from tipcflow.config.loader import load_yaml
from tipcflow.domain.errors import ConfigError

Day = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
DAYS: tuple[Day, ...] = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
Kind = Literal["broken", "regression", "infrastructure"]
Glob = Annotated[str, StringConstraints(min_length=1)]
Clock = Annotated[str, StringConstraints(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError("a time zone such as Europe/Berlin") from error
    return name


class Mail(ConfigModel):
    """Sends mails.

    Attributes:
        connection: id of the Airflow connection of type SMTP.
    """

    connection: str = Field(default="smtp_default", min_length=1)
    to: tuple[Annotated[str, StringConstraints(pattern=r"^[^@\s,]+@[^@\s,]+$")], ...] = Field(min_length=1)
    sender: str = Field(min_length=3)


class Quiet(ConfigModel):
    """Hours in which nothing is sent; `start` may be later than `end`: then they include midnight.

    Attributes:
        days: days on which nothing is sent at any hour.
    """

    start: Clock = "00:00"
    end: Clock = "00:00"
    days: tuple[Day, ...] = ()
    timezone: Annotated[str, AfterValidator(_zone)] = "UTC"

    def covers(self, epoch: float) -> bool:
        """Whether nothing is sent at this time, in seconds since the epoch."""
        now = datetime.fromtimestamp(epoch, ZoneInfo(self.timezone))
        start, end = time.fromisoformat(self.start), time.fromisoformat(self.end)
        clock = now.time()
        between = start <= clock < end if start <= end else clock >= start or clock < end
        return between or DAYS[now.weekday()] in self.days


class Digest(ConfigModel):
    """A weekly summary: sent on this day after this time, in the time zone of the quiet hours."""

    day: Day = "monday"
    after: Clock = "08:00"


class Team(ConfigModel):
    """Who is notified about which chains, and how.

    Attributes:
        name: of the file.
        chains: globs of the chains that belong to the team.
        kinds: kinds of problems, as on the page Today.
        mail, slack, webhook: exactly one; `slack` and `webhook` are ids of Airflow connections.
    """

    name: str = ""
    chains: tuple[Glob, ...] = ("*",)
    kinds: tuple[Kind, ...] = Field(default=("broken", "regression", "infrastructure"), min_length=1)
    mail: Mail | None = None
    slack: str = ""
    webhook: str = ""
    quiet: Quiet = Quiet()
    digest: Digest | None = None

    @model_validator(mode="after")
    def _one_sink(self) -> Self:
        if sum(bool(sink) for sink in (self.mail, self.slack, self.webhook)) != 1:
            raise ValueError("exactly one of mail, slack and webhook")
        return self

    def owns(self, chain: str) -> bool:
        """Whether a chain belongs to the team."""
        return any(fnmatchcase(chain, pattern) for pattern in self.chains)

    def digest_due(self, epoch: float) -> str:
        """Return the name of the week's digest (`2026-W48`) once its day and time have come, otherwise ''."""
        if self.digest is None:
            return ""
        now = datetime.fromtimestamp(epoch, ZoneInfo(self.quiet.timezone))
        monday = now.date() - timedelta(days=now.weekday())
        day = monday + timedelta(days=DAYS.index(self.digest.day))
        due = datetime.combine(day, time.fromisoformat(self.digest.after), tzinfo=now.tzinfo)
        year, week, _ = now.isocalendar()
        return f"{year}-W{week:02d}" if now.astimezone(UTC) >= due.astimezone(UTC) else ""


def load_teams(config_dir: Path) -> tuple[Team, ...]:
    """All files of configs/teams, by name; none if the folder does not exist.

    Raises:
        ConfigError: a file is invalid.
    """
    teams = []
    for path in sorted((config_dir / "teams").glob("*.yaml")):
        team = load_yaml(path, Team)
        if team.name not in ("", path.stem):
            raise ConfigError(
                "is not the name of the file", file=str(path), key="name", found=team.name, expected=path.stem
            )
        teams.append(team.model_copy(update={"name": path.stem}))
    return tuple(teams)
