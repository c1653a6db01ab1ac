"""References: accuracy targets of a suite's models (configs/references/<suite>.yaml)."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from tipcflow.config.base import ConfigModel
from tipcflow.domain.numbers.metrics import judged


def _without_suffix(params: str) -> str:
    if "/" in params or params.endswith(".txt"):
        raise ValueError("expected the file's name without folder and without .txt")
    return params


class Reference(ConfigModel):
    """The target of one metric of one model.

    Attributes:
        params: name of one of the model's params files, without `.txt`; '' matches any.
        mode, variant: '' matches any.
        metric: name in the registry (`top1`); the last evaluation of a run is compared.
        target, tolerance: in `unit`; a value worse than the target by more than the tolerance fails.
        unit: `1` for a fraction, `%` for a percentage; measured values are converted.
        because: source of the target, for readers of the verdict.
    """

    model: str
    params: Annotated[str, AfterValidator(_without_suffix)] = ""
    mode: str = ""
    variant: str = ""
    metric: Annotated[str, AfterValidator(judged)]
    target: float
    tolerance: float = Field(ge=0)
    unit: Literal["1", "%"] = "1"
    because: str = Field(min_length=1)


class References(ConfigModel):
    """The targets of one suite."""

    schema_version: int = 1
    suite: str
    references: tuple[Reference, ...] = ()

    def of(self, model: str, mode: str, *, params: str = "") -> tuple[Reference, ...]:
        """The targets of a model in a mode, for all variants.

        Args:
            mode, params: '' means any.
        """
        return tuple(
            reference
            for reference in self.references
            if reference.model == model
            and (not mode or reference.mode in ("", mode))
            and (not params or reference.params in ("", params))
        )
