"""Poll a job that no task watches."""

import time

from tipcflow.domain import InfraError
from tipcflow.execute.job.member import Member
from tipcflow.execute.node.nodes import Nodes


def poll(nodes: Nodes, member: Member, *, absent: str = "", patient: bool = False) -> None:
    """Update a member with the response of its job's runner.

    Args:
        absent: why the member is lost if its node has no such job; '' if that is expected.
        patient: whether an unresponsive node may come back.
    """
    try:
        answer = nodes[member.name].poll(member.spec)
    except InfraError as error:
        member.down_since = member.down_since or time.time()
        if not patient or time.time() - member.down_since > nodes.reconnect_s:
            member.lost = str(error)
        return
    member.down_since = 0.0
    member.take_answer(answer)
    if absent and answer.get("state") == "absent":
        member.lost = f"node {member.name}: {absent}"
