"""The environment class: what makes two runs comparable, as a readable, stable key.

Not a hash of everything: a kernel update or another host name must not break a history. What differs beyond the
key is kept with the run's node facts and shown.
"""

import re
from collections.abc import Sequence

from tipcflow.domain import NodeFacts


def environment_class(facts: Sequence[NodeFacts], *, device: str, world_size: int) -> str:
    """For example `cpu/amd-epyc-7b13/2-nodes/4-ranks/paddle-3.3` or `gpu/8x-tesla-v100/.../driver-440`."""
    if not facts:
        return ""
    hardware = sorted({_hardware(fact, device) for fact in facts})
    framework = sorted({_framework(fact) for fact in facts})
    parts = [device, "+".join(hardware), f"{len(facts)}-nodes", f"{world_size}-ranks", "+".join(framework)]
    drivers = sorted({fact.driver.split(".")[0] for fact in facts if fact.driver})
    if device == "gpu" and drivers:
        parts.append("driver-" + "+".join(drivers))
    return "/".join(part for part in parts if part)


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
