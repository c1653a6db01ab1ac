"""Trainings that did not happen as declared, and end with exit code 0."""

from tests.support.certify import Site
from tests.support.liars.lie import DOUBT, Lie, both, edit

TRAIN = "train.py"
BANNER = 'print(f"rank {rank} of {world}, backend gloo, device cpu, seed {args.seed}", flush=True)\n'
EPOCHS = "for epoch in range(1, args.epochs + 1):\n"
STEP = '        time.sleep(args.step_time * (20 if mine and what == "slow" else 1))\n'
WEIGHTS = (
    "os.makedirs(args.output_dir, exist_ok=True)\n"
    "open(os.path.join(args.output_dir, 'latest.pdparams'), 'w').write('weights of last week, honestly')\n"
)


def _indent(code: str, by: str) -> str:
    return "".join(f"{by}{line}\n" for line in code.splitlines())


def _after_banner(code: str) -> tuple[str, str]:
    return BANNER, f"{BANNER}{code}"


def _retried_and_silent(site: Site) -> None:
    """The first attempt logs and is killed; the second logs nothing and keeps what the first one wrote."""
    mark = site.suite.parent / "killed-before"
    edit(
        TRAIN,
        _after_banner(
            f"mark = {str(mark)!r} + str(rank)\n"
            "if os.path.exists(mark):\n"
            f"{_indent(WEIGHTS, '    ')}    sys.exit(0)\n"
            "open(mark, 'w').close()\n"
        ),
        (
            STEP,
            f"{STEP}        if epoch == 2 and iteration == 4 and rank == 3:\n"
            "            os.kill(os.getpid(), 9)\n",
        ),
    )(site)
    site.configure_policy(retries={"killed": 1})


LAUNCH = "paddle/distributed/launch.py"
IDLE = 'ips = args.ips.split(",")\n    if ips.index(args.host):\n        sys.exit(0)\n'
# As many other suites: no rank reports itself and rank 0 alone logs; the training takes 8 s.
quiet_for_seconds = edit(
    TRAIN,
    (BANNER, ""),
    (STEP, "        time.sleep(0.8)\n"),
    ('        if mine and what == "mute":\n', '        if rank or (mine and what == "mute"):\n'),
)

LIES = (
    Lie(
        "exit 0 without training",
        "the training writes weights, prints no iteration and ends with 0",
        edit(TRAIN, _after_banner(f"{WEIGHTS}sys.exit(0)\n")),
        (r"train", r"iteration|loss"),
    ),
    Lie(
        "exit 0 without training, no history",
        "the same in the first run of a chain",
        edit(TRAIN, _after_banner(f"{WEIGHTS}sys.exit(0)\n")),
        (r"train", r"iteration|loss"),
        history=False,
    ),
    Lie(
        "one line of learning rate",
        "each rank prints a single line with a learning rate and ends with 0",
        edit(TRAIN, _after_banner(f"print('[Epoch 1, iter: 1] lr: 0.01000', flush=True)\n{WEIGHTS}sys.exit(0)\n")),
        (r"loss|iteration",),
        history=False,
    ),
    Lie(
        "half the ranks silent",
        "the ranks of node b print nothing and end with 0; earlier runs logged on all ranks",
        edit(TRAIN, (BANNER, f"{BANNER}if rank >= 2:\n    sys.exit(0)\n")),
        (r"rank", r"2"),
    ),
    Lie(
        "half the ranks silent, no history",
        "the same in the first run of a chain: the ranks report themselves and log no iteration",
        edit(TRAIN, (BANNER, f"{BANNER}if rank >= 2:\n    sys.exit(0)\n")),
        (r"rank", r"2"),
        history=False,
    ),
    Lie(
        "node b leaves at once",
        "the ranks of node b end with 0 before they print anything",
        edit(TRAIN, (BANNER, f"if rank >= 2:\n    sys.exit(0)\n{BANNER}")),
        (r"rank", r"2"),
        history=False,
    ),
    Lie(
        "two groups of two",
        "each node trains alone: its ranks are 0 and 1 of 2",
        edit(TRAIN, (BANNER, f"rank, world = rank % 2, 2\n{BANNER}")),
        (r"rank 0", r"world size 2|on a and on b|one group"),
        history=False,
    ),
    Lie(
        "four loners",
        "each process trains alone and reports it: rank 0 of 1",
        edit(TRAIN, (BANNER, f"rank, world = 0, 1\n{BANNER}")),
        (r"rank 0", r"world|one group|declared"),
        history=False,
    ),
    Lie(
        "one process per node",
        "the launcher starts one process on each node instead of two",
        edit(
            "paddle/distributed/launch.py",
            ("args = parser.parse_args()\n", "args = parser.parse_args()\n    args.nproc_per_node = 1\n"),
        ),
        (r"rank", r"2"),
        history=False,
    ),
    Lie(
        "ranks no longer report themselves",
        "the line with rank, world size and device is missing; earlier runs had it",
        edit(TRAIN, (BANNER, "")),
        (r"rank line",),
    ),
    Lie(
        "rank 3 leaves early",
        "rank 3 ends with 0 after 1 of 10 iterations",
        edit(TRAIN, (STEP, f"{STEP}        if rank == 3 and iteration == 2:\n            sys.exit(0)\n")),
        (r"rank 3", r"iteration|epoch"),
        history=False,
    ),
    Lie(
        "all ranks leave early",
        "all ranks stop after 6 of 10 iterations and rank 0 writes weights",
        edit(
            TRAIN,
            (STEP, f"{STEP}        if epoch == 2 and iteration == 2:\n            break\n"),
        ),
        (r"iteration|epoch",),
        history=False,
    ),
    Lie(
        "two of five lines in another format",
        "two of five iterations are printed in a format that is not known; earlier runs had them all",
        edit(
            TRAIN,
            (
                '        print(\n            f"[Epoch',
                "        if iteration in (2, 4):\n"
                "            print(f'after {iteration} of epoch {epoch} the cost is {loss:.5f}', flush=True)\n"
                "            continue\n"
                '        print(\n            f"[Epoch',
            ),
        ),
        (r"ran.log", r"lines are recognized"),
        DOUBT,
    ),
    Lie(
        "one epoch instead of two",
        "the training ignores the declared number of epochs",
        edit(TRAIN, (EPOCHS, "for epoch in range(1, 2):\n")),
        (r"epoch", r"1", r"2"),
        history=False,
    ),
    Lie(
        "the first epoch twice",
        "the lines of epoch 1 are printed twice, epoch 2 never happens",
        edit(TRAIN, ('f"[Epoch {epoch}, iter', 'f"[Epoch 1, iter')),
        (r"epoch",),
        history=False,
    ),
    Lie(
        "a crash that the launcher swallows",
        "rank 3 raises an exception; the launcher ends with 0 all the same",
        both(
            edit(
                TRAIN,
                (
                    STEP,
                    f"{STEP}        if rank == 3 and epoch == 2:\n            raise ValueError('bad sample 17')\n",
                ),
            ),
            edit(
                "paddle/distributed/launch.py",
                ("if any(codes):", "if False:"),
            ),
        ),
        (r"rank 3",),
        history=False,
    ),
    Lie(
        "a straggler that the launcher gives up",
        "rank 3 hangs after 3 iterations; the launcher kills it at the end and ends with 0",
        both(
            edit(TRAIN, (STEP, f"{STEP}        if rank == 3 and iteration == 4:\n            time.sleep(3600)\n")),
            edit(
                "paddle/distributed/launch.py",
                (
                    "if all(code is not None for code in codes):\n            return\n",
                    "if codes[0] is not None:\n            workers[-1].kill()\n            return\n",
                ),
            ),
        ),
        (r"rank 3",),
        history=False,
    ),
    Lie(
        "another device than declared",
        "the ranks report a training on a GPU of a CPU cluster",
        edit(TRAIN, (BANNER, BANNER.replace("device cpu", "device gpu:0"))),
        (r"device", r"gpu"),
        history=False,
    ),
    Lie(
        "another seed than declared",
        "rank 0 reports seed 1234",
        edit(TRAIN, (BANNER, BANNER.replace("{args.seed}", "1234"))),
        (r"seed 1234",),
        history=False,
    ),
    Lie(
        "attempt 2 trains nothing",
        "rank 3 is killed in attempt 1; attempt 2 writes weights, prints no iteration and ends with 0",
        _retried_and_silent,
        (r"iteration|loss",),
        history=False,
    ),
    Lie(
        "an idle node",
        "no rank reports itself, rank 0 alone logs, the launcher on node b ends with 0 and starts no process",
        both(quiet_for_seconds, edit(LAUNCH, ('ips = args.ips.split(",")\n', IDLE))),
        (r"ran\.world_size", r"ranks? 2", r"the job on b ended"),
        history=False,
    ),
)
