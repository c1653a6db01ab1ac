"""Documents of a run with its resolved configuration; the base and all others are in `tipcflow.domain`."""

from typing import ClassVar

from tipcflow.config.goldens import Goldens
from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.config.suite import Suite
from tipcflow.domain.run_documents import Root


class SuiteDocument(Root[Suite]):
    """The suite as of the resolution of the run."""

    NAME: ClassVar[str] = "suite"


class PolicyDocument(Root[Policy]):
    """The policy as of the resolution of the run."""

    NAME: ClassVar[str] = "policy"


class ReferencesDocument(Root[References]):
    """The suite's accuracy targets as of the resolution of the run."""

    NAME: ClassVar[str] = "references"


class GoldensDocument(Root[Goldens]):
    """The stored predictions that the run is compared with."""

    NAME: ClassVar[str] = "goldens"
