"""What a chain does in a mode on a cluster: ordered steps with exact commands."""

import shlex
from enum import StrEnum
from typing import Literal

from pydantic import Field

from tipcflow.domain.base import Frozen


class Compat(StrEnum):
    """Whose semantics a plan follows: the suite's own script, defects included, or what the file says."""

    BASH = "bash"
    SPEC = "spec"


class StepKind(StrEnum):
    """What a step does."""

    PREPARE = "prepare"
    TRAIN = "train"
    EVAL = "eval"
    EXPORT = "export"
    INFER_CPU = "infer_cpu"
    INFER_GPU = "infer_gpu"


# An empty part of PYTHONPATH would be the working folder.
_INSIDE = (
    "PATH=$TIPCFLOW_BIN:$PATH; export PYTHONPATH=$TIPCFLOW_PYTHON${TIPCFLOW_PYTHON:+${PYTHONPATH:+:}}$PYTHONPATH"
)


class Command(Frozen):
    """One shell command, as `bash -c` gets it.

    Attributes:
        text: the command; paths in it are relative to `cwd`.
        cwd: working folder, relative to the suite's root.
        env: variables set for it on top of the node's; an empty value unsets.
        log: where its output belongs, relative to the suite's root; '' when the command redirects itself.
        container: the words that start the container it runs in, '' for none. They name folders of the run by the
            variables that every job has (`TIPCFLOW_ROOT` …).
    """

    text: str
    cwd: str = "."
    env: dict[str, str] = {}
    log: str = ""
    container: str = ""

    @property
    def shell(self) -> str:
        """What the node's shell gets: the command, in its container where it has one.

        The run's own `python`, `pip` … come first on the image's PATH, and what lets Python processes show their
        stacks on its PYTHONPATH.
        """
        if not self.container:
            return self.text
        return f"{self.container} bash -c {shlex.quote(f'{_INSIDE}; {self.text}')}"


class Leg(Frozen):
    """One inference combination. `None` means that the params file does not declare that axis.

    `not_run` is the reason why the node cannot do what is declared; '' when it can.
    """

    id: str
    command: Command
    device: Literal["cpu", "gpu"]
    onednn: bool | None = None
    tensorrt: bool | None = None
    precision: str = ""
    threads: int | None = None
    batch_size: int | None = None
    not_run: str = ""


class Variant(Frozen):
    """One point of trainer x precision x device group.

    `devices` are the ids as the file gives them (GPU ids, or process indices on a CPU cluster).
    """

    id: str
    trainer: str
    precision: str = ""
    devices: tuple[str, ...] = ()
    node_count: int = 1
    world_size: int = 1


class Step(Frozen):
    """One unit of work on one node, or on all nodes of a gang.

    Attributes:
        id: unique in the plan; contains the variant and, when there are several, the repeat.
        commands: node name -> command; empty for inference steps, which have legs instead.
        nodes: the nodes it runs on, in rank order (the first holds rank 0 and writes the weights).
        slots: how many slots it takes on each node.
        after: ids of the steps that must have ended well before.
        expects: files that must exist afterwards on the first node and be newer than its start; relative to
            the suite's root; `{a,b}` is not expanded, `*` is.
        artefacts: further files or globs (relative to the suite's root, on every node) to fetch and to hash.
        world_size: ranks of a training step over all nodes, 0 outside training.
        epochs, iterations: how long a training is by the argument of its command; 0 where that says nothing of it.
        not_run: the reason why the whole step cannot be done here; '' when it can.
    """

    id: str
    kind: StepKind
    variant: str = ""
    repeat: int = 1
    nodes: tuple[str, ...]
    slots: int = 1
    commands: dict[str, Command] = {}
    legs: tuple[Leg, ...] = ()
    after: tuple[str, ...] = ()
    expects: tuple[str, ...] = ()
    artefacts: tuple[str, ...] = ()
    world_size: int = 0
    epochs: int = 0
    iterations: int = 0
    deadline_s: float = Field(default=900.0, gt=0)
    not_run: str = ""

    @property
    def is_gang(self) -> bool:
        """Whether its node tasks start together or not at all."""
        return self.kind is StepKind.TRAIN and len(self.nodes) > 1


class Substitution(Frozen):
    """One value of the file that the run replaces (IPs by the cluster's, GPU ids by processes, python …)."""

    what: str
    found: str
    used: str
    because: str


class Quirk(Frozen):
    """One named difference between the suite's script and what the params file says."""

    id: str
    line: int = 0
    bash: str
    spec: str


class Plan(Frozen):
    """Everything a run will do, before it does it. Stored with the run; every later task reads it only.

    Attributes:
        deterministic: whether equal seeds give equal losses here, bit for bit: the suite declares it.
    """

    schema_version: int = 1
    chain: str
    suite: str
    dialect: str
    model: str
    params_file: str
    params_sha256: str
    mode: str
    compat: Compat
    cluster: str = ""
    nodes: tuple[str, ...] = ()
    seed: int | None = None
    repeats: int = 1
    diagnose: bool = False
    deterministic: bool = False
    variants: tuple[Variant, ...] = ()
    steps: tuple[Step, ...] = ()
    substitutions: tuple[Substitution, ...] = ()
    quirks: tuple[Quirk, ...] = ()

    @property
    def trains(self) -> bool:
        """Whether the mode trains: a run of it that did not train is never `pass`."""
        return any(step.kind is StepKind.TRAIN for step in self.steps)

    def needing(self, step_id: str) -> list[str]:
        """Ids of the steps that need this one to have ended well, directly or through others."""
        found = {step_id}
        for step in self.steps:  # in an order in which each comes after what it needs
            if found.intersection(step.after):
                found.add(step.id)
        return [step.id for step in self.steps if step.id in found and step.id != step_id]

    def step(self, step_id: str) -> Step:
        """The step of that id.

        Raises:
            KeyError: when there is none.
        """
        for step in self.steps:
            if step.id == step_id:
                return step
        raise KeyError(step_id)
