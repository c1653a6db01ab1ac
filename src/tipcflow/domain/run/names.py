"""Names that consist of parts: chains, steps, jobs, modes. Only their types join and split the text."""

from dataclasses import astuple, dataclass
from pathlib import PurePosixPath
from typing import Self


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

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str` wrote.

        Raises:
            ValueError: the text is not the name of a chain.
        """
        parts = text.split("/")
        if len(parts) != 3 or not all(parts):
            raise ValueError(f"{text!r} is not the name of a chain, '<suite>/<model>/<file>'")
        return cls(*parts)

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

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str` wrote."""
        variant, _, name = text.rpartition("/")
        return cls(variant, name)
