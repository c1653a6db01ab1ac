"""Runs that are slower, and try not to look it. They need a history and a policy that gates speed."""

from tests.support.certify import Site
from tests.support.liars.lie import DOUBT, WORSE, Lie, both, edit
from tests.support.liars.metrics import flood
from tests.support.liars.training import EPOCHS, STEP, TRAIN

BATCH_COST = "avg_batch_cost: {args.step_time:.5f} sec"
READER_COST = "avg_reader_cost: 0.00010 sec"
WEEKLY = {"policy": "weekly"}


def _slower(factor: float) -> object:
    return edit(TRAIN, (BATCH_COST, f"avg_batch_cost: {{args.step_time * {factor}:.5f}} sec"))


def _crashing_confirm_run(site: Site) -> None:
    """The run is slow; the confirm run of the same commit crashes."""
    mark = site.suite.parent / "trained-before"
    both(
        _slower(3.0),  # type: ignore[arg-type]
        edit(
            TRAIN,
            (
                EPOCHS,
                f"mark = {str(mark)!r} + str(rank)\n"
                "if os.path.exists(mark):\n    raise SystemExit('the second start always fails')\n"
                f"open(mark, 'w').close()\n{EPOCHS}",
            ),
        ),
    )(site)


LIES = (
    Lie(
        "three times as slow",
        "every batch takes 3 times as long; the confirm run measures the same",
        _slower(3.0),  # type: ignore[arg-type]
        (r"batch_cost",),
        statuses=WORSE,
    ),
    Lie(
        "ten per cent slower",
        "batches take 10 % longer under the weekly policy",
        _slower(1.1),  # type: ignore[arg-type]
        (r"batch_cost",),
        statuses=DOUBT,
        options=WEEKLY,
    ),
    Lie(
        "30 % slower input pipeline",
        "reading takes 3 times as long and each batch 30 % longer, as if the node were slow",
        both(
            edit(TRAIN, (READER_COST, "avg_reader_cost: 0.00030 sec")),
            _slower(1.3),  # type: ignore[arg-type]
        ),
        (r"batch_cost|reader_cost",),
        statuses=DOUBT,
        options=WEEKLY,
    ),
    Lie(
        "slower after 70 MiB of log",
        "the first epoch is as quick as ever; behind 70 MiB of debug lines each batch takes 5 times as long",
        edit(
            TRAIN,
            (STEP, flood(STEP)),
            (BATCH_COST, "avg_batch_cost: {args.step_time * (1 if epoch == 1 else 5):.5f} sec"),
            ("for iteration in range(1, 6):", "for iteration in range(1, 6 if epoch == 1 else 26):"),
        ),
        (r"batch_cost|iteration",),
        statuses=WORSE,
    ),
    Lie(
        "the confirm run crashes",
        "the run is 3 times slower, and the confirm run of the same commit crashes",
        _crashing_confirm_run,
        (r"batch_cost|confirm",),
        statuses=WORSE,
    ),
)
