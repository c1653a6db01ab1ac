"""Faults of the model's own code: the verdict is `failed`, with the rank if one rank is the root cause."""

from tests.faults.fault import CODE_ERROR, FAILED, HANG, NONE, OOM, OUTPUT_MISSING, Fault
from tests.faults.losses import RANKS
from tests.faults.world import World

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
        "message",
        "a rank raises SystemExit with a message",
        FAILED,
        prepare=_at("raise SystemExit('bad data')"),
        classes=CODE_ERROR,
        names_rank=True,
    ),
    Fault(
        "exception",
        "a rank raises an exception",
        FAILED,
        prepare=_at("raise ValueError('sample 17 is broken')"),
        classes=CODE_ERROR,
        names_rank=True,
    ),
    Fault(
        "exit 1",
        "a rank calls sys.exit(1) without a word",
        FAILED,
        prepare=_at("sys.exit(1)"),
        classes=CODE_ERROR,
        names_rank=True,
    ),
    Fault(
        "leaves",
        "a rank leaves with exit code 0",
        FAILED,
        prepare=_at("sys.exit(0)"),
        # Rank 0 writes the weights.
        classes=CODE_ERROR | NONE | OUTPUT_MISSING,
        names_rank=True,
    ),
    Fault(
        "all leave",
        "all ranks leave with exit code 0",
        FAILED,
        prepare=_at("sys.exit(0)", everyone=True),
        names_node=False,
        # Before the weights are written, these are missing too.
        classes=CODE_ERROR | NONE | OUTPUT_MISSING,
    ),
    Fault(
        "nan", "a rank's losses become nan", FAILED, prepare=_loss("float('nan')"), classes=NONE, names_rank=True
    ),
    Fault(
        "inf", "a rank's losses become inf", FAILED, prepare=_loss("float('inf')"), classes=NONE, names_rank=True
    ),
    Fault(
        "hang", "a rank sleeps for ever", FAILED, prepare=_at("time.sleep(3600)"), classes=HANG, names_rank=True
    ),
    Fault(
        "busy hang",
        "a rank computes for ever and prints nothing",
        FAILED,
        prepare=_at("exec('while True: pass')"),
        classes=HANG,
        names_rank=True,
    ),
    Fault(
        "hang, deaf to TERM",
        "a rank ignores TERM and sleeps for ever",
        FAILED,
        prepare=_at("signal.signal(signal.SIGTERM, signal.SIG_IGN), time.sleep(3600)"),
        classes=HANG,
        names_rank=True,
    ),
    Fault(
        "slow rank",
        "a rank waits 2 s before one iteration; the run passes",
        frozenset(),
        prepare=_at("time.sleep(2)"),
        healed=True,
        names_node=False,
        classes=NONE,
    ),
    Fault("abort", "a rank calls abort()", FAILED, prepare=_at("os.abort()"), classes=CODE_ERROR, names_rank=True),
    Fault(
        "no weights",
        "rank 0 writes no weights",
        FAILED,
        prepare=_weights("os.remove(file.name)"),
        names_node=False,
        classes=OUTPUT_MISSING,
    ),
    Fault(
        "empty weights",
        "rank 0 writes weights of 0 bytes",
        FAILED,
        prepare=_weights("pass"),
        names_node=False,
        # The file exists: not the step fails but the check of what it wrote.
        classes=OUTPUT_MISSING | NONE,
    ),
    Fault(
        "daemon",
        "a rank leaves a daemon without our marks behind; the run passes",
        frozenset(),
        prepare=_daemon,
        healed=True,
        names_node=False,
        classes=NONE,
    ),
    Fault(
        "nan behind a flood",
        "a rank prints 80 MiB of text, then its losses are nan",
        FAILED,
        prepare=lambda world: (
            _loss("float('nan')")(world),  # type: ignore[operator, func-returns-value]
            world.at_iteration(f"[os.write(1, (b'x' * 127 + b'\\n') * 8192) for _ in range({80})]"),
        ),
        paddle=False,
        classes=NONE,
        names_rank=True,
    ),
    Fault(
        "carriage returns",
        "a rank draws a progress bar of 200 kB on one line; the run passes",
        frozenset(),
        prepare=_at("print(''.join(chr(13) + str(n) + '%' for n in range(30000)), end=chr(13), flush=True)"),
        healed=True,
        names_node=False,
        classes=NONE,
    ),
    Fault(
        "rubbish",
        "a rank writes random bytes into its log; the run passes",
        frozenset(),
        prepare=_at("os.write(1, os.urandom(100000) + b'\\n')"),
        healed=True,
        names_node=False,
        classes=NONE,
    ),
    Fault(
        "weights are a FIFO",
        "rank 0 leaves a FIFO in the place of its weights",
        FAILED,
        prepare=_weights("os.remove(file.name), os.mkfifo(file.name)"),
        names_node=False,
        # A second attempt, because of a second fault, waits at the FIFO of the first when it writes its weights.
        classes=OUTPUT_MISSING | HANG,
    ),
    Fault(
        "weights are /dev/zero",
        "rank 0 leaves a link to /dev/zero in the place of its weights",
        FAILED,
        prepare=_weights("os.remove(file.name), os.symlink('/dev/zero', file.name)"),
        names_node=False,
        classes=OUTPUT_MISSING,
    ),
    Fault(
        "out of memory",
        "a rank allocates more than its address space",
        FAILED,
        prepare=_at("bytearray(1 << 50)"),
        classes=OOM,
        names_rank=True,
    ),
    Fault(
        "many processes",
        "a rank leaves 100 children behind, half of them zombies; the run passes, or their memory is a regression",
        # After five accepted runs, which all cases through one Airflow share, the memory is compared.
        frozenset({"regression"}),
        prepare=_at("[os.fork() or os._exit(n % 2 and time.sleep(600) or 0) for n in range(100)]"),
        healed=True,
        names_node=False,
        classes=NONE,
    ),
)
