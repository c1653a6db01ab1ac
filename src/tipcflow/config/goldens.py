"""Goldens: reviewed and stored predictions (configs/goldens/<suite>/<model>/<file>.<mode>.json)."""

from pathlib import Path

from pydantic import AliasChoices, Field, ValidationError, model_validator

from tipcflow.config.base import ConfigModel
from tipcflow.config.loader import message_and_expected
from tipcflow.domain.errors import ConfigError, why_unreadable
from tipcflow.domain.keys import GoldenKey, PredictionKey


class GoldenPredictions(ConfigModel):
    """Predictions of one inference step in one precision.

    Attributes:
        leg: the leg that produced the scores; '' for those of a file.
        file: name of the suite's file of results that the scores come from, '' for those of a leg. Only its images
            are compared, by name without folder, as in TIPC's compare_results.py.
        scores: class scores and results; a result of a file may have no numbers.
    """

    leg: str = ""
    file: str = ""
    scores: dict[PredictionKey, tuple[float, ...]] = Field(min_length=1)

    @property
    def origin(self) -> str:
        """The leg or the file."""
        return self.file or self.leg

    @model_validator(mode="after")
    def _one_origin(self) -> "GoldenPredictions":
        if bool(self.leg) == bool(self.file):
            raise ValueError("give either leg or file")
        return self


class Goldens(ConfigModel):
    """The goldens of one chain in one mode.

    Attributes:
        seed, compat: of the recorded run; another training gives other scores.
        run, framework, suite_commit: of the recorded run, for information.
        who, because, at: who recorded them, why, and when (ISO 8601, UTC).
        predictions: inference step and precision -> scores.
    """

    schema_version: int = 1
    chain: str
    mode: str
    compat: str = "spec"
    seed: int | None = None
    run: str
    framework: str = ""
    suite_commit: str = ""
    who: str = Field(min_length=1)
    because: str = Field(min_length=1)
    at: str
    predictions: dict[GoldenKey, GoldenPredictions] = Field(
        min_length=1, validation_alias=AliasChoices("predictions", "answers")
    )


def golden_path(config_dir: Path, chain: str, mode: str) -> Path:
    """Path of the goldens of a chain (`suite/model/file`) in a mode."""
    return config_dir / "goldens" / f"{chain}.{mode}.json"


def golden_names(config_dir: Path) -> frozenset[str]:
    """Return `<chain>.<mode>` of all goldens, from one walk through their folder."""
    root = config_dir / "goldens"
    return frozenset(path.relative_to(root).as_posix().removesuffix(".json") for path in root.glob("*/*/*.json"))


def load_goldens(config_dir: Path, chain: str, mode: str) -> Goldens | None:
    """The goldens of a chain in a mode; None if there are none.

    Raises:
        ConfigError: the file is invalid.
    """
    path = golden_path(config_dir, chain, mode)
    try:
        return Goldens.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"cannot be read: {why_unreadable(error)}", file=str(path)) from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        message, expected = message_and_expected(first)
        shown = "" if first["type"] == "missing" else str(first["input"])[:120]
        raise ConfigError(message, file=str(path), key=key, found=shown, expected=expected, hint=_HINT) from error


_HINT = "generate this file with `tipcflow golden record`"
