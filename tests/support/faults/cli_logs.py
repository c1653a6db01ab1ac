"""Logs that no program should write."""

from tests.support.faults.case import Case

BLOCKS = 1024
# One MB of lines; 1024 of them into rank 3's own log.
FLOOD = f'[os.write(1, (b"x" * 127 + b"\\n") * 8192) for _ in range({BLOCKS})]'
# As much into the job's own log, which is watched and fetched, through the launcher's output.
SAID = 'said = os.open(f"/proc/{os.getppid()}/fd/1", os.O_WRONLY | os.O_APPEND)'
SAID_FLOOD = f'{SAID}; [os.write(said, (b"x" * 127 + b"\\n") * 8192) for _ in range({BLOCKS})]'
# Into the worker's log and, through the launcher's output, into the job's own log, which is watched.
GARBAGE = "; ".join(
    [
        SAID,
        'dirt = b"".join(os.urandom(99991) + b"\\n" + b"y" * (1 << 20) + b"\\n" for _ in range(3))',
        "[os.write(where, dirt) for where in (1, said)]",
    ]
)


def gigabyte(case: Case) -> None:
    behind_gate(case, FLOOD)


def gigabyte_said(case: Case) -> None:
    behind_gate(case, SAID_FLOOD)
    assert case.run is not None
    shown = (case.site.home / "runs" / case.run.id).glob("*/b/logs/main.log*")
    assert sum(path.stat().st_size for path in shown) < 1 << 30, "what no person reads was fetched as a whole"


def garbage(case: Case) -> None:
    behind_gate(case, GARBAGE)


def behind_gate(case: Case, mine: str) -> None:
    gate = case.gate(rank=3, mine=mine)
    running = case.start()
    gate.wait(running)
    case.now()
    gate.open()
    # A gigabyte takes 75 s on two idle cores, several times as long beside other tests.
    case.end(running, seconds=300)
