"""Two plans of one file side by side: what the suite's script runs, and what the file says."""

import re

from tipcflow.domain import Frozen, Plan, Step


class DiffRow(Frozen):
    """One command or leg that differs. A side that has none is ''."""

    step: str
    leg: str = ""
    node: str = ""
    bash: str = ""
    spec: str = ""


def plan_diff(bash: Plan, spec: Plan) -> list[DiffRow]:
    """The commands and legs in which the two plans of one file differ, in the order of `spec`, then of `bash`.

    The reasons are the quirks that both plans carry. Runs of blanks do not count.
    """
    left, right = _texts(bash), _texts(spec)
    keys = list(dict.fromkeys([*right, *left]))
    return [
        DiffRow(step=step, leg=leg, node=node, bash=left.get(key, ""), spec=right.get(key, ""))
        for key in keys
        for step, leg, node in [key]
        if left.get(key, "") != right.get(key, "")
    ]


def _texts(plan: Plan) -> dict[tuple[str, str, str], str]:
    found: dict[tuple[str, str, str], str] = {}
    for step in plan.steps:
        found.update(_step_texts(step))
    return found


def _step_texts(step: Step) -> dict[tuple[str, str, str], str]:
    commands = {(step.id, "", node): _plain(command.text) for node, command in step.commands.items()}
    legs = {(step.id, leg.id, step.nodes[0]): _plain(leg.command.text) for leg in step.legs}
    return {**commands, **legs}


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
