"""A framework build under test, installed into the run's own environment."""

from tipcflow.domain.base import Frozen

# In the label of a wheel, and so in `Run.framework` of a run that tested one.
WHEEL = " (wheel "
_MODULES = {"paddlepaddle": "paddle", "torch": "torch"}


class FrameworkBuild(Frozen):
    """A release, or a wheel.

    Attributes:
        name: distribution, normalized (`paddlepaddle-gpu`).
        version: its version.
        wheel: file name of the wheel; '' for a release from the node's package index.
        sha256: hash of the wheel; '' for a release.
    """

    name: str
    version: str
    wheel: str = ""
    sha256: str = ""

    @property
    def label(self) -> str:
        """The version for users: two wheels of one version differ."""
        return f"{self.version}{WHEEL}{self.sha256[:12]})" if self.sha256 else self.version

    @property
    def module(self) -> str:
        """The name by which nodes detect the framework."""
        return next((module for name, module in _MODULES.items() if self.name.startswith(name)), self.name)
