"""Parser of `configs/airflow.env`: tipcflow's Airflow settings, one KEY=VALUE per line, each with its reason."""

import re
from pathlib import Path
from typing import NamedTuple

from tipcflow.domain import ConfigError

_KEY = re.compile(r"AIRFLOW__[A-Z_]+?__[A-Z0-9_]+")


class Setting(NamedTuple):
    """One line of the file.

    Attributes:
        key: name of the environment variable, AIRFLOW__SECTION__OPTION.
        value: the literal value; no quotes, no expansion (like docker's `env_file`).
        why: the comment lines above the setting, joined.
    """

    key: str
    value: str
    why: str

    @property
    def section(self) -> str:
        """Return Airflow's section, for example `scheduler`."""
        return self.key.split("__", 2)[1].lower()

    @property
    def option(self) -> str:
        """Return Airflow's option in that section."""
        return self.key.split("__", 2)[2].lower()


def read_settings(path: Path) -> list[Setting]:
    """Return all settings of the file, in order.

    Raises:
        ConfigError: the file is missing, or has an invalid line, a duplicate setting, or a setting without a
            reason.
    """
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise ConfigError("cannot be read", file=str(path), hint="the file contains Airflow's settings") from error
    settings: dict[str, Setting] = {}
    why: list[str] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text:
            why = []
        elif text.startswith("#"):
            why.append(text.lstrip("# "))
        else:
            setting = _setting(path, number, text, " ".join(why))
            if setting.key in settings:
                raise ConfigError("duplicate key", file=str(path), line=number, key=setting.key)
            settings[setting.key] = setting
            why = []
    return list(settings.values())


def _setting(path: Path, number: int, text: str, why: str) -> Setting:
    key, equals, value = text.partition("=")
    if not equals or not _KEY.fullmatch(key) or value != value.strip() or value[:1] in ("'", '"'):
        raise ConfigError(
            "not a setting",
            file=str(path),
            line=number,
            found=text[:80],
            expected="AIRFLOW__SECTION__OPTION=value, without spaces or quotes around the value",
        )
    if not why:
        raise ConfigError(
            "no reason given", file=str(path), line=number, key=key, expected="a comment above it with the reason"
        )
    return Setting(key, value, why)
