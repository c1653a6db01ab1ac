"""Plan of a chain in a mode on a cluster: ordered steps with exact commands."""

import shlex
from enum import StrEnum
from typing import Literal

from pydantic import Field

from tipcflow.domain.base import Frozen


class Compat(StrEnum):
    """Semantics of a plan: the suite's own script, including its defects, or the params file."""

    BASH = "bash"
    SPEC = "spec"


class StepKind(StrEnum):
    """Kind of a step."""

    PREPARE = "prepare"
    TRAIN = "train"
    EVAL = "eval"
    EXPORT = "export"
    INFER_CPU = "infer_cpu"
    INFER_GPU = "infer_gpu"


class Compression(StrEnum):
    """Declared compression of an exported model: values of 8 bits, or fewer parameters."""

    QUANTIZED = "quantized"
    PRUNED = "pruned"


# An empty part of PYTHONPATH would mean the working directory.
_INSIDE = (
    "PATH=$TIPCFLOW_BIN:$PATH; export PYTHONPATH=$TIPCFLOW_PYTHON${TIPCFLOW_PYTHON:+${PYTHONPATH:+:}}$PYTHONPATH"
)


# Start of the pattern of an artefact that is the log of all ranks, in DLPerf's layout:
# `logs/…/4n8g/r50_b128_fp32_1.log`.
TOPOLOGY_LOGS = "logs/**/"


class Command(Frozen):
    """One shell command for `bash -c`.

    Attributes:
        text: the command; paths in it are relative to `cwd`.
        cwd: working directory, relative to the suite's root.
        env: variables in addition to the node's; an empty value unsets a variable.
        log: file of its output, relative to the suite's root; '' if the command redirects its output itself.
        container: the words that start its container, '' for none. They refer to folders of the run by the
            variables of every job (`TIPCFLOW_ROOT` …).
    """

    text: str
    cwd: str = "."
    env: dict[str, str] = {}
    log: str = ""
    container: str = ""

    @property
    def shell(self) -> str:
        """Return the text for the node's shell: the command, in its container if it has one.

        The run's own `python`, `pip` … are first on the image's PATH; the module that dumps stacks of
        Python processes is on its PYTHONPATH.
        """
        if not self.container:
            return self.text
        return f"{self.container} bash -c {shlex.quote(f'{_INSIDE}; {self.text}')}"


class Leg(Frozen):
    """One inference combination. `None` means that the params file does not declare the axis.

    `not_run` is the reason why the node does not support the leg; '' if it does.
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

    `devices` are the ids in the file (GPU ids, or process indices on a CPU cluster).
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
        id: unique in the plan; contains the variant and, if there are several, the repeat.
        commands: node name -> command; empty for inference steps, which have legs instead.
        nodes: the step's nodes, in rank order (the first runs rank 0 and writes the weights).
        slots: number of slots on each node.
        after: ids of the steps that must have succeeded before.
        expects: files that must exist afterwards on the first node and be newer than its start; relative to
            the suite's root; `{a,b}` is not expanded, `*` is.
        artefacts: additional files or globs (relative to the suite's root, on every node) to fetch and to hash.
        world_size: ranks of a training step over all nodes, 0 outside training. With parameter servers, the ranks
            are those of the trainers.
        servers: parameter servers of a training step over all nodes, in rank order on the nodes; 0 for none.
        compression: what an export declares about its model; None for an export without compression.
        epochs, iterations: length of a training by the argument of its command; 0 if the command has none.
        not_run: the reason why the cluster does not support the step; '' if it does.
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
    servers: int = 0
    compression: Compression | None = None
    epochs: int = 0
    iterations: int = 0
    deadline_s: float = Field(default=900.0, gt=0)
    not_run: str = ""

    @property
    def is_gang(self) -> bool:
        """Whether the step is a gang, whose node tasks start all together or not at all."""
        return self.kind is StepKind.TRAIN and len(self.nodes) > 1


class Substitution(Frozen):
    """One value of the file that the run replaces (IPs by the cluster's, GPU ids by processes, python …)."""

    what: str
    found: str
    used: str
    because: str


class Quirk(Frozen):
    """One named difference between the suite's script and the params file.

    Attributes:
        words: keys and values of the file that differ between the two.
    """

    id: str
    line: int = 0
    bash: str
    spec: str
    words: tuple[str, ...] = ()


class Plan(Frozen):
    """The complete plan of a run. Stored with the run; later tasks only read it.

    Attributes:
        deterministic: whether equal seeds give bit-identical losses on this cluster, as declared by the suite.
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
        """Whether the mode trains; its runs never pass without a training."""
        return any(step.kind is StepKind.TRAIN for step in self.steps)

    def needing(self, step_id: str) -> list[str]:
        """Return ids of the steps that depend on this step, directly or indirectly."""
        dependents = {step_id}
        for step in self.steps:  # in topological order
            if dependents.intersection(step.after):
                dependents.add(step.id)
        return [step.id for step in self.steps if step.id in dependents and step.id != step_id]

    def step(self, step_id: str) -> Step:
        """Return the step of that id.

        Raises:
            KeyError: the step does not exist.
        """
        for step in self.steps:
            if step.id == step_id:
                return step
        raise KeyError(step_id)
