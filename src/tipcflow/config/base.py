"""Base class of configuration models."""

from pydantic import ConfigDict

from tipcflow.domain.base import Frozen


class ConfigModel(Frozen):
    """A frozen model with finite numbers only: every value would pass a limit of nan or inf."""

    model_config = ConfigDict(allow_inf_nan=False)
