"""Looking at a job that nobody watches."""

import time

from tipcflow.domain import InfraError
from tipcflow.execute.job.member import Member
from tipcflow.execute.node.nodes import Nodes


def ask(nodes: Nodes, member: Member, *, absent: str = "", patient: bool = False) -> None:
    """Take what the job's runner answers.

    Args:
        absent: why the member is lost when its node has no such job; '' where that is expected.
        patient: whether a node that does not answer may come back.
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
