"""Names that consist of parts, such as chains, DAGs, steps and jobs. Only their types join and split the text."""

import hashlib
import re
from dataclasses import astuple, dataclass
from pathlib import PurePosixPath
from typing import Self

# End of the variant of a training with the profiler.
PROFILING = "_profiling"
_BEFORE = "before_"
_LONGEST_DAG_ID = 250
_DEVICE_WORD = re.compile(r"(?<![A-Za-z0-9])N(\d{1,9})C(\d{1,9})(?![A-Za-z0-9])", re.ASCII)


@dataclass(frozen=True, order=True, slots=True)
class ChainName:
    """The name of a chain wherever it is stored or shown: `<suite>/<model>/<file>`.

    Attributes:
        model: folder of the params file.
        file: the params file without its suffix.
    """

    suite: str
    model: str
    file: str

    def __str__(self) -> str:
        return "/".join(self.parts)

    @property
    def parts(self) -> tuple[str, ...]:
        """Suite, model and file."""
        return astuple(self)

    @property
    def in_suite(self) -> str:
        """The name within the suite, `<model>/<file>`."""
        return f"{self.model}/{self.file}"

    @property
    def model_name(self) -> str:
        """The name of the model among all suites, `<suite>/<model>`."""
        return f"{self.suite}/{self.model}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str` wrote.

        Raises:
            ValueError: the text is not the name of a chain.
        """
        name = cls.parse_or_none(text)
        if name is None:
            raise ValueError(f"{text!r} is not the name of a chain, '<suite>/<model>/<file>'")
        return name

    @classmethod
    def parse_or_none(cls, text: str) -> Self | None:
        """Read what `str` wrote; None if the text is anything else."""
        parts = text.split("/")
        return cls(*parts) if len(parts) == 3 and all(parts) else None

    @classmethod
    def suite_of(cls, text: str) -> str:
        """Return the suite of a stored name; '' if it is not the name of a chain.

        Earlier versions stored the path of a suite file in the name of some runs.
        """
        name = cls.parse_or_none(text)
        return name.suite if name else ""

    @classmethod
    def of_file(cls, suite: str, params_file: str) -> Self:
        """Return the name of the chain of a params file of a suite."""
        path = PurePosixPath(params_file)
        return cls(suite, path.parent.name or "params", path.stem)


@dataclass(frozen=True, order=True, slots=True)
class JobId:
    """One attempt of a step of a run on a node: `<run>/<step>/<attempt>`, as every process of the job carries it.

    Attributes:
        step: id of the step, which may contain `/`.
    """

    run: str
    step: str
    attempt: int

    def __str__(self) -> str:
        return f"{self.run}/{self.in_run}"

    @property
    def in_run(self) -> str:
        """The name within the run, `<step>/<attempt>`."""
        return f"{self.step}/{self.attempt}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str` wrote.

        Raises:
            ValueError: the text is not the id of a job.
        """
        run, _, rest = text.partition("/")
        step, _, attempt = rest.rpartition("/")
        if not (run and step and attempt.isdecimal()):
            raise ValueError(f"{text!r} is not the id of a job, '<run>/<step>/<attempt>'")
        return cls(run, step, int(attempt))


@dataclass(frozen=True, order=True, slots=True)
class ModeName:
    """A mode of a suite's scripts, with the case of a benchmark: `<mode>` or `<mode>:<case>`."""

    mode: str
    case: str = ""

    def __str__(self) -> str:
        return f"{self.mode}:{self.case}" if self.case else self.mode

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str` wrote."""
        mode, _, case = text.partition(":")
        return cls(mode, case)


@dataclass(frozen=True, order=True, slots=True)
class StepId:
    """The id of a step: `<variant>/<name>`, or its name if all variants share it.

    Attributes:
        variant: with the repeat; '' for a shared step.
    """

    variant: str
    name: str

    def __str__(self) -> str:
        return f"{self.variant}/{self.name}" if self.variant else self.name

    @property
    def is_before(self) -> bool:
        """Whether it is a suite's extra command before a training or an export (`before_name`)."""
        return self.name.startswith(_BEFORE)

    @property
    def is_profiling(self) -> bool:
        """Whether it is a training with the profiler, before a benchmark's measured one (`PROFILING`)."""
        return any(part.endswith(PROFILING) for part in self.variant.split("/"))

    def is_in(self, variant: str) -> bool:
        """Whether the step belongs to a variant, or to a part of it."""
        return self.variant == variant or self.variant.startswith(f"{variant}/")

    @property
    def kind_name(self) -> str:
        """The kind of its commands, for an extra command the kind of the step that it precedes."""
        return self.name.removeprefix(_BEFORE).partition("_")[0]

    @staticmethod
    def before_name(kind: str, number: int) -> str:
        """Return the name of a suite's extra command before a step.

        Args:
            kind: `train` or `export`.
            number: 1 for the first of a variant.
        """
        return f"{_BEFORE}{kind}_{number}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str` wrote."""
        variant, _, name = text.rpartition("/")
        return cls(variant, name)


@dataclass(frozen=True, slots=True)
class DagId:
    """ID of a DAG in Airflow; that of a chain is `<suite>.<model>.<file>`, those of the other DAGs have no dot.

    Characters of a chain's name that Airflow rejects are `_` in the parts; long IDs are truncated. An ID therefore
    identifies its chain only among known chains.

    Attributes:
        suite, model, file: '' if the DAG is not a chain's.
    """

    text: str
    suite: str = ""
    model: str = ""
    file: str = ""

    def __str__(self) -> str:
        return self.text

    @property
    def is_of_chain(self) -> bool:
        """Whether the ID has the form of a chain's."""
        return bool(self.file)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the ID of any DAG."""
        parts = text.split(".")
        return cls(text, *parts) if len(parts) == 3 and all(parts) else cls(text)

    @classmethod
    def of_chain(cls, chain: str) -> Self:
        """Return the ID of a chain's DAG.

        Source of the rule: Airflow's `validate_key` (letters, digits, `_`, `-`, `.`, at most 250 characters).
        """
        dotted = ".".join(re.sub(r"[^A-Za-z0-9_-]+", "_", part) for part in chain.split("/"))
        if len(dotted) > _LONGEST_DAG_ID:
            dotted = f"{dotted[: _LONGEST_DAG_ID - 9]}-{hashlib.sha256(chain.encode()).hexdigest()[:8]}"
        return cls.parse(dotted)

    @staticmethod
    def glob_of_chains(glob: str) -> str:
        """Return the glob of DAG IDs for a glob of chains, whose parts are separated by `/` or `.`."""
        return ".".join(re.sub(r"[^A-Za-z0-9_\-*?\[\]!]", "_", part) for part in re.split(r"[/.]", glob))


@dataclass(frozen=True, order=True, slots=True)
class DeviceWord:
    """Nodes and devices of a benchmark, as TIPC's scripts name them: `N<nodes>C<devices on all nodes>`."""

    nodes: int
    devices: int

    def __str__(self) -> str:
        return f"N{self.nodes}C{self.devices}"

    @property
    def per_node(self) -> int:
        """Devices of a node, rounded up."""
        return -(-self.devices // self.nodes)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str` wrote.

        Raises:
            ValueError: another form, or no node or device.
        """
        word = cls.parse_or_none(text)
        if word is None:
            raise ValueError(f"{text!r} is not a number of nodes and devices, 'N<nodes>C<devices on all nodes>'")
        return word

    @classmethod
    def parse_or_none(cls, text: str) -> Self | None:
        """Read what `str` wrote; None if the text is anything else."""
        match = _DEVICE_WORD.fullmatch(text)
        word = cls(int(match[1]), int(match[2])) if match else None
        return word if word and word.nodes and word.devices else None

    @classmethod
    def find(cls, text: str) -> Self | None:
        """Return the last word in a text; None if it contains none."""
        words = _DEVICE_WORD.findall(text)
        return cls.parse_or_none("N{}C{}".format(*words[-1])) if words else None


@dataclass(frozen=True, order=True, slots=True)
class FrameworkVersion:
    """A framework as nodes report and runs record it: `<name> <version>`, for example `paddle 3.3.1`.

    Attributes:
        name, version: '' if unknown.
    """

    name: str
    version: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()

    @property
    def requirement(self) -> str:
        """As a requirement for pip, `<name>==<version>`."""
        return f"{self.name}=={self.version}" if self.version else self.name

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str` wrote."""
        name, _, version = text.partition(" ")
        return cls(name, version)
