"""The detector after earlier runs: confirm values are evidence, and continued runs are not judged again."""

from tipcflow.check.baseline.level import level_of
from tipcflow.check.baseline.replayed import Replay
from tipcflow.check.context import observed_values
from tipcflow.check.detect import Gate, Observed
from tipcflow.config.policy import Policy
from tipcflow.domain import MetricKey, PastRun

RULES = Policy(name="p", history=52)
QUIET = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 100.7, 99.3, 100.0, 101.1, 98.9] * 2
KEY = MetricKey("train", "", "batch_cost")


def level(past: list[Observed], replay: Replay | None = None) -> tuple[float, int, int]:
    found = level_of(past, "batch_cost", RULES, replay=replay)
    return found.base, found.start, found.end


def alerted(past: list[Observed], value: float, confirm: float) -> bool:
    return level_of(past, "batch_cost", RULES).look(value, confirm).alert is not None


def test_confirm_value_of_an_earlier_run_is_evidence_later() -> None:
    """A run with its confirm run that passed, and then another one: together they are a change."""
    rules = RULES.model_copy(update={"detect": RULES.detect.model_copy(update={"floor": 0.005})})

    def score(confirm: float | None) -> int:
        past = [*map(Observed, QUIET), Observed(102.0, confirm)]
        return level_of(past, "batch_cost", rules).gate.copy()._values.count(102.1)  # type: ignore[union-attr]

    assert [score(None), score(102.1)] == [0, 1]


def test_doubtful_run_moves_no_baseline_but_is_seen() -> None:
    """An unconfirmed run is neither in the level nor in `past`, and the next equal run raises the change."""
    doubtful = [Observed(value, value, accepted=False) for value in (102.6, 102.7)]
    quiet = [*map(Observed, QUIET)]
    assert level([*quiet, *doubtful])[0] == level(quiet)[0]
    found = level_of([*quiet, *doubtful], "batch_cost", RULES)
    assert (len(found.past), found.observed, found.doubtful) == (24, 26, (24, 25))


def test_since_counts_accepted_runs() -> None:
    """The start of a change among doubtful runs is the next accepted run."""
    past = [*map(Observed, QUIET), Observed(101.5, 101.0, accepted=False)]
    found = level_of(past, "batch_cost", RULES)
    alert = found.look(160.0, 160.2).alert
    assert alert is not None
    assert (alert.index, alert.since) == (24, 24)


def test_replay_continues_and_starts_again() -> None:
    """The state is that of a new replay, whether runs continue the last ones or not."""
    replay = Replay()
    runs = [Observed(value, value if at % 5 == 0 else None) for at, value in enumerate([*QUIET, *[90.0] * 12])]
    for end in range(8, len(runs)):
        assert level(runs[:end], replay) == level(runs[:end])
    assert level(runs[3:], replay) == level(runs[3:])
    rule = RULES.gate_of("batch_cost")
    first = replay.after(runs[3:], Gate(False, rule), 0.05)
    assert replay.after(runs[3:], Gate(False, rule), 0.05).gate is first.gate


def test_observed_values_include_confirm_runs_and_unconfirmed_runs() -> None:
    """Confirm values are attached, and unconfirmed runs follow the accepted run before them if they have one."""
    history = [
        PastRun(run="a", medians={KEY: 1.0}),
        PastRun(run="b", medians={KEY: float("nan")}),
        PastRun(run="c", medians={KEY: 2.0}, confirms={KEY: 2.5}),
    ]
    doubtful = {
        "a": (PastRun(run="u", medians={KEY: 3.0}, confirms={KEY: 3.5}), PastRun(run="v", medians={KEY: 4.0})),
        "b": (PastRun(run="w", medians={KEY: 5.0}, confirms={KEY: 5.0}),),
    }
    expected = [Observed(1.0), Observed(3.0, 3.5, accepted=False), Observed(2.0, 2.5)]
    assert observed_values(history, KEY, doubtful) == expected
