"""Faults of the model's own code: the verdict is `failed`, with the rank where one rank is to blame."""

from tests.faults.fault import EITHER, FAILED, Fault
from tests.faults.world import RANKS, World

# The line that writes the weights.
WRITE = '        file.write("" if what == "empty" else f"weights of seed {args.seed}\\n")\n'


def _at(code: str, *, everyone: bool = False) -> object:
    def prepare(world: World) -> None:
        world.at_iteration(code, ranks=range(RANKS) if everyone else None)

    return prepare


def _loss(value: str) -> object:
    """From the chosen iteration on the chosen rank prints another loss."""

    def prepare(world: World) -> None:
        old = "generator.random() * 0.01\n"
        number = "(epoch - 1) * 5 + iteration"
        world.in_train(
            old,
            f"{old}        if rank == {world.rank} and {number} >= {world.iteration}:\n"
            f"            loss = {value}\n",
        )

    return prepare


def _weights(code: str) -> object:
    def prepare(world: World) -> None:
        world.in_train(WRITE, f"        {code}\n")

    return prepare


def _daemon(world: World) -> None:
    """A daemon of two forks with an empty environment, which survives its session."""
    code = "os.fork() or (os.setsid(), os.fork() and os._exit(0), os.execve('/bin/sleep', ['sleep', '300'], {}))"
    world.at_iteration(code)


FAULTS = (
    Fault(
        "message", "a rank raises SystemExit with a message", FAILED, prepare=_at("raise SystemExit('bad data')")
    ),
    Fault(
        "exception", "a rank raises an exception", FAILED, prepare=_at("raise ValueError('sample 17 is broken')")
    ),
    Fault("exit 1", "a rank calls sys.exit(1) without a word", FAILED, prepare=_at("sys.exit(1)")),
    Fault("leaves", "a rank leaves with exit code 0", FAILED, prepare=_at("sys.exit(0)")),
    Fault(
        "all leave",
        "all ranks leave with exit code 0",
        FAILED,
        prepare=_at("sys.exit(0)", everyone=True),
        names_node=False,
    ),
    Fault("nan", "a rank's losses become nan", FAILED, prepare=_loss("float('nan')"), names_node=False),
    Fault("inf", "a rank's losses become inf", FAILED, prepare=_loss("float('inf')"), names_node=False),
    Fault("hang", "a rank sleeps for ever", FAILED, prepare=_at("time.sleep(3600)")),
    Fault(
        "busy hang", "a rank computes for ever and prints nothing", FAILED, prepare=_at("exec('while True: pass')")
    ),
    Fault(
        "hang, deaf to TERM",
        "a rank ignores TERM and sleeps for ever",
        FAILED,
        prepare=_at("signal.signal(signal.SIGTERM, signal.SIG_IGN), time.sleep(3600)"),
    ),
    Fault(
        "slow rank",
        "a rank waits 2 s before one iteration; the run passes",
        frozenset(),
        prepare=_at("time.sleep(2)"),
        healed=True,
        names_node=False,
    ),
    Fault("abort", "a rank calls abort()", EITHER, prepare=_at("os.abort()")),
    Fault(
        "no weights",
        "rank 0 writes no weights",
        FAILED,
        prepare=_weights("os.remove(file.name)"),
        names_node=False,
    ),
    Fault("empty weights", "rank 0 writes weights of 0 bytes", FAILED, prepare=_weights("pass"), names_node=False),
    Fault(
        "daemon",
        "a rank leaves a daemon without our marks behind; the run passes",
        frozenset(),
        prepare=_daemon,
        healed=True,
        names_node=False,
    ),
    Fault(
        "nan behind a flood",
        "a rank prints 80 MiB of text, then its losses are nan",
        FAILED,
        prepare=lambda world: (
            _loss("float('nan')")(world),  # type: ignore[operator, func-returns-value]
            world.at_iteration(f"[os.write(1, (b'x' * 127 + b'\\n') * 8192) for _ in range({80})]"),
        ),
        names_node=False,
        paddle=False,
    ),
    Fault(
        "carriage returns",
        "a rank draws a progress bar of 200 kB on one line; the run passes",
        frozenset(),
        prepare=_at("print(''.join(chr(13) + str(n) + '%' for n in range(30000)), end=chr(13), flush=True)"),
        healed=True,
        names_node=False,
    ),
    Fault(
        "rubbish",
        "a rank writes random bytes into its log; the run passes",
        frozenset(),
        prepare=_at("os.write(1, os.urandom(100000) + b'\\n')"),
        healed=True,
        names_node=False,
    ),
)
