"""Base class of configuration models."""

from typing import Any

from pydantic import BeforeValidator, ConfigDict

from tipcflow.domain.base import Frozen


class ConfigModel(Frozen):
    """A frozen model with finite numbers only: every value would pass a limit of nan or inf."""

    model_config = ConfigDict(allow_inf_nan=False)


def _as_text(value: Any) -> Any:
    """Return the values of a mapping as text: YAML reads `1`, `0.5` and `yes` as numbers and booleans."""
    if not isinstance(value, dict):
        return value
    return {name: str(int(item) if isinstance(item, bool) else item) for name, item in value.items()}


# Marks a mapping of environment variables, whose values a user may write without quotes.
AS_TEXT = BeforeValidator(_as_text)
