"""Steps with the variables and arguments of the suite file, after the steps that meet its other needs."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence

from tipcflow.config.needs import Data
from tipcflow.domain import Command, Compat, Step, StepKind
from tipcflow.domain.run.names import StepId
from tipcflow.plan.source.hosts import Host
from tipcflow.plan.source.options import PlanOptions

# The command line of the node agent; the job's folders are filled in when the job is made.
_AGENT = '-I "$TIPCFLOW_AGENT"'
_FOLDERS = {"TIPCFLOW_AGENT": "{agent}", "TIPCFLOW_CACHE": "{cache}", "TIPCFLOW_RUN": "{run}"}
_KINDS = {
    StepKind.TRAIN: "train",
    StepKind.EVAL: "eval",
    StepKind.EXPORT: "export",
    StepKind.INFER_CPU: "infer",
    StepKind.INFER_GPU: "infer",
}


def with_needs(
    steps: Sequence[Step],
    hosts: Sequence[Host],
    options: PlanOptions,
    compat: Compat,
    value_lists: Sequence[str] = (),
) -> list[Step]:
    """Return the steps with what the suite file needs.

    Args:
        hosts: every host of the plan.
        value_lists: options of the suite that take all words after them; the second use would replace the first.
    """
    first = list(_first(hosts, options))
    variables = _variables(options)
    arguments = {str(kind): text for kind, text in options.needs.arguments.items() if compat is Compat.SPEC}
    made = [_with_variables(step, variables, arguments, value_lists) for step in steps]
    if first:
        last = (first[-1].id,)
        made = [step if step.after else step.model_copy(update={"after": last}) for step in made]
    return [*first, *made]


def _variables(options: PlanOptions) -> dict[str, str]:
    needs = options.needs
    variables = dict(needs.env)
    if needs.pythonpath:
        places = (
            "" if folder in (".", "./") else "/" + folder.removeprefix("./").rstrip("/")
            for folder in needs.pythonpath
        )
        variables["PYTHONPATH"] = ":".join("{root}" + place for place in places)
    return variables


def _with_variables(
    step: Step, variables: Mapping[str, str], arguments: Mapping[str, str], value_lists: Sequence[str]
) -> Step:
    own = "" if StepId.parse(step.id).is_before else arguments.get(_KINDS.get(step.kind, ""), "")
    if not variables and not own:
        return step

    def more(command: Command) -> Command:
        text = _with_arguments(command.text, own, value_lists) if own else command.text
        return command.model_copy(update={"env": {**variables, **command.env}, "text": text})

    return step.model_copy(
        update={
            "commands": {node: more(command) for node, command in step.commands.items()},
            "legs": tuple(leg.model_copy(update={"command": more(leg.command)}) for leg in step.legs),
        }
    )


def _with_arguments(text: str, arguments: str, value_lists: Sequence[str]) -> str:
    """Return a command with the arguments at its end, or in the list of values that the command already has."""
    option, _, values = arguments.partition(" ")
    if option in value_lists and f" {option} " in text:
        return text.replace(f" {option} ", f" {option} {values} ", 1)
    return f"{text.rstrip()} {arguments}"


def _first(hosts: Sequence[Host], options: PlanOptions) -> Iterator[Step]:
    """Yield the steps that meet the suite's needs on every node, before anything else."""
    after: tuple[str, ...] = ()
    if options.own_environment or options.needs.packages:
        commands = {host.name: _environment(host, options) for host in hosts}
        yield _step("environment", commands, after, options)
        after = ("environment",)
    if options.needs.data:
        commands = {host.name: _data(host, options) for host in hosts}
        yield _step("data", commands, after, options)


def _step(name: str, commands: dict[str, Command], after: tuple[str, ...], options: PlanOptions) -> Step:
    return Step(
        id=name,
        kind=StepKind.PREPARE,
        nodes=tuple(commands),
        commands=commands,
        after=after,
        deadline_s=options.step_deadline_s,
    )


def _environment(host: Host, options: PlanOptions) -> Command:
    packages = shlex.quote(json.dumps(list(options.needs.packages)))
    text = f'{_python(host, options)} {_AGENT} environment "$TIPCFLOW_RUN" "$TIPCFLOW_CACHE" {packages}'
    if options.build:
        text += f" --build {shlex.quote(options.build.model_dump_json())}"
    return Command(text=text, env=dict(_FOLDERS))


def _data(host: Host, options: PlanOptions) -> Command:
    texts = [f"{_python(host, options)} {_AGENT} {_words(data)}" for data in options.needs.data]
    mirrors = dict(host.node.mirrors) if host.node else {}
    env = {**_FOLDERS, **({"TIPCFLOW_MIRRORS": json.dumps(mirrors)} if mirrors else {})}
    return Command(text=" && ".join(texts), env=env)


def _words(data: Data) -> str:
    words = ["--sha256", data.sha256] if data.sha256 else []
    words += ["--unpack"] if data.is_archive else []
    words += ["--copy"] if data.link == "copy" else []
    operands = f'{shlex.quote(data.to)} {shlex.quote(data.source)} "$TIPCFLOW_CACHE"'
    return " ".join(["data", operands, *words])


def _python(host: Host, options: PlanOptions) -> str:
    return shlex.quote(options.interpreters.get(host.name, "python"))
