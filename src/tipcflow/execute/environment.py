"""From what a run's nodes say about themselves to its environment class.

What differs beyond the class is kept with the run's node facts and shown.
"""

import re
from collections.abc import Sequence

from tipcflow.domain import NodeFacts
from tipcflow.domain.environment import EnvironmentClass


def environment_class(facts: Sequence[NodeFacts], *, device: str, world_size: int) -> str:
    """For example `cpu/amd-epyc-7b13-2/2-nodes/4-ranks/paddlepaddle-3.3`; '' when nothing is known of the nodes.

    Args:
        facts: of the nodes that the run uses.
        device: of its cluster.
        world_size: processes of its largest training.
    """
    if not facts:
        return ""
    drivers = {fact.driver.split(".")[0] for fact in facts if fact.driver}
    return EnvironmentClass(
        device=device,
        hardware=_joined({_hardware(fact, device) for fact in facts}),
        nodes=str(len(facts)),
        ranks=str(world_size),
        framework=_joined({_framework(fact) for fact in facts}),
        driver=_joined(drivers) if device == "gpu" else "",
    ).key


def _joined(several: set[str]) -> str:
    return "+".join(sorted(several))


def _hardware(fact: NodeFacts, device: str) -> str:
    if device == "gpu" and fact.gpus:
        return f"{len(fact.gpus)}x-{_slug(str(fact.gpus[0].get('name', 'gpu')))}"
    return f"{_slug(fact.cpu_model) or 'cpu'}-{fact.cpu_count}"


def _framework(fact: NodeFacts) -> str:
    major_minor = ".".join(fact.framework_version.split(".")[:2])
    return f"{_slug(fact.framework)}-{major_minor}" if fact.framework else ""


def _slug(text: str) -> str:
    text = re.sub(r"\((?:r|tm)\)|@.*$|\bcpu\b|\bprocessor\b", " ", text.lower())
    return re.sub(r"[^a-z0-9.]+", "-", text).strip("-")
