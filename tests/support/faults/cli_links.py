"""Faults of the network and of the ssh servers."""

import time

from tests.support.faults.case import Case

CUT_S = 20.0


def unreachable_at_start(case: Case) -> None:
    with case.cut("b"):
        case.now()
        running = case.start()
        case.away.add("b")
        case.end(running)
        case.noticed_at = time.time()


def link_cut_and_back(case: Case) -> None:
    gate = case.gate()
    running = case.start()
    gate.wait(running)
    with case.cut("b"):
        case.now()
        gate.open()
        time.sleep(CUT_S)  # how long it is away is the fault
    case.end(running)


def sshd_killed(case: Case) -> None:
    gate = case.gate()
    running = case.start()
    gate.wait(running)
    case.now()
    case.nodes.kill_sshd("b")
    try:
        case.lost(running)
        gate.open()
    finally:
        case.nodes.start_sshd("b")
    case.reconnected(running)
    case.end(running)


def link_cut_for_good(case: Case) -> None:
    """What stays on the node is named; when the node is back, it is ended there."""
    case.site.configure_policy(waits={"reconnect_s": 2, "lease_ttl_s": 6, "silence_s": 4})
    gate = case.gate()
    running = case.start()
    gate.wait(running)
    with case.cut("b"):
        case.now()
        case.away.add("b")
        case.end(running)
    printed = case.printed(running)
    assert "node b could not be listed" in printed, printed
    assert case.site.training_runs_on("b"), "no command could have ended the training"
    address = case.nodes.cluster.node("b").address
    with case.site.store() as store:
        kept = [lease for lease in store.leases.all() if lease.node == address]
        assert kept, "the slots of a node that could not be listed were given back"
        case.wait_for(lambda: not any(one.live(time.time()) for one in store.leases.all()), "the lease's end")
    result = case.reap()
    assert f"run {running.id}: ended" in result, result
    assert "was dropped" in result, result
    case.away.clear()
