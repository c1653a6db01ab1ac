"""The base of what YAML files hold."""

from pydantic import ConfigDict

from tipcflow.domain.base import Frozen


class ConfigModel(Frozen):
    """A frozen value whose numbers are finite: against a limit of nan or inf everything would pass."""

    model_config = ConfigDict(allow_inf_nan=False)
