"""Documents of a run: its resolved configuration, and what the selection reads; others are in `domain`."""

from typing import ClassVar

from tipcflow.config.goldens import Goldens
from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.config.suite import Suite
from tipcflow.domain.run_documents import Fields, Root


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


class OpenedDocument(Fields):
    """The files of the suite that the run's Python processes opened.

    Attributes:
        commit: full id of the suite's commit.
        paths: relative to the suite's root, sorted.
    """

    NAME: ClassVar[str] = "opened"
    commit: str
    paths: tuple[str, ...] = ()


class SelectorDocument(Fields):
    """Whether the selection for pull requests would have run the chain of a run that got worse.

    Attributes:
        verdicts: repository (configs/repositories) -> why the chain would have been selected; '' if not.
        base, head: full ids of the last good run's commit and of the run's.
    """

    NAME: ClassVar[str] = "selector"
    base: str
    head: str
    verdicts: dict[str, str] = {}
