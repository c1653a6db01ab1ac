"""Length of a training by its ranks' logs, compared with its peers and the params file."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tipcflow.check.select import RankKey, iterations
from tipcflow.domain import Expectation, Facts, Measurement, PrintedProgress, Step
from tipcflow.domain.numbers.metrics import scope_of

# How much fewer lines than earlier epochs the last one may have where those differ among themselves, too.
_SHARE = 0.8
Place = tuple[int, int]


@dataclass(frozen=True)
class ShortLog:
    """A rank whose log ends too early, or that trained too long, as text."""

    node: str
    rank: int
    why: str


def short_logs(facts: Facts, step: Step, piece: Expectation) -> list[ShortLog]:
    """Problems with the length of a training, rank by rank; empty if it is as declared.

    Suites print every N iterations, so one line more or less per epoch is not a difference.
    """
    lines = iterations(facts, step)
    logged = {key: places for key in lines if (places := _places(lines[key]))}
    problems = {(log.node, log.rank): log for log in _against_peers(logged)}
    printed = {(progress.node, progress.rank): progress for progress in facts.progress.get(step.id, ())}
    for (node, rank), places in logged.items():
        single = _has_single_iterations(places, printed.get((node, rank)))
        why = _against_plan(places, piece, _count(lines[node, rank]) if single else 0)
        if piece.epochs or piece.iterations:  # neither: a time limit or `max_iters` ends the training
            why = why or _against_total(places, printed.get((node, rank)))
        if why and (node, rank) not in problems:
            problems[node, rank] = ShortLog(node, rank, why)
    return [problems[key] for key in sorted(problems, key=lambda key: (key[1], key[0]))]


def _places(lines: Sequence[Measurement]) -> list[Place]:
    """(epoch, iteration) of a rank's training lines, each once, in their order; none where neither is printed."""
    places = {
        (line.epoch, line.iteration): None
        for line in lines
        if max(line.iteration, line.epoch) >= 0 and scope_of(line.metric).is_plain
    }
    return list(places)


def _count(lines: Sequence[Measurement]) -> int:
    """The number of a rank's training lines, also of several with the same epoch and iteration."""
    counts = Counter(line.metric for line in lines if line.epoch >= 0 and scope_of(line.metric).is_plain)
    return max(counts.values(), default=0)


def _has_single_iterations(places: list[Place], printed: PrintedProgress | None) -> bool:
    """Whether each epoch is a single iteration by the last line (`Epoch: 4/5, iter: 0/1`)."""
    return printed is not None and printed.total == 1 and printed.iteration == places[-1][1]


def _against_peers(logged: Mapping[RankKey, list[Place]]) -> list[ShortLog]:
    counts = {key: Counter(epoch for epoch, _ in places) for key, places in logged.items()}
    most: Counter[int] = Counter()
    for epochs in counts.values():
        most |= epochs
    longest = max((len(places) for places in logged.values()), default=0)
    return [
        ShortLog(key[0], key[1], f"logged {len(logged[key])} of {longest} iterations that another rank logged")
        for key, epochs in counts.items()
        if any(epochs[epoch] < count - 1 for epoch, count in most.items())
        or (len(most) > 1 and set(most) - set(epochs))
    ]


def _against_plan(places: list[Place], piece: Expectation, single: int) -> str:
    """Whether the training is shorter or longer than declared.

    PaddleGAN reads the epoch before the loader starts the next one, so that the first line of each epoch has the
    number of the epoch before it: with one iteration per epoch, the last number is one too small. `single` is the
    number of lines if each of them is an epoch, otherwise 0.
    """
    if piece.iterations:
        return _iterations(places, piece.iterations)
    epochs = Counter(epoch for epoch, _ in places if epoch >= 0)
    if not piece.epochs or not epochs:
        return ""
    # Epochs are counted from 0 or from 1: the first epochs show which.
    first = min(epochs)
    trained = max(max(epochs) - min(first, 1) + 1, min(single, piece.epochs))
    if trained + _between(epochs) < piece.epochs:
        return f"logged {trained} of {piece.epochs} epochs"
    if trained > piece.epochs and first <= 1:
        return f"logged {trained} epochs; {piece.epochs} are declared"
    return _cut_short(epochs)


def _between(epochs: Counter[int]) -> int:
    """How many epochs may follow the last line: none, unless the suite prints every N iterations of all epochs, so
    that some epochs have no line."""
    numbers = sorted(epochs)
    every = max((later - earlier for earlier, later in pairwise(numbers)), default=numbers[0])
    return every if every > 1 else 0


def _cut_short(epochs: Counter[int]) -> str:
    """Whether the last epoch has fewer lines than those before it."""
    last = max(epochs)
    before = [count for epoch, count in epochs.items() if epoch != last]
    if not before:
        return ""
    usual = min(before)
    enough = usual - 1 if usual == max(before) else _SHARE * usual - 1
    if epochs[last] >= enough:
        return ""
    return f"logged {epochs[last]} of {usual} iterations in the last epoch ({last})"


def _against_total(places: list[Place], printed: PrintedProgress | None) -> str:
    """Whether the last epoch ends before the number of iterations that its lines print (`Iter: 6/10`).

    A log with one line per epoch does not show after how many iterations the next line is due. Another counter
    than the parsed one (`step 9/10, global_step: 50`) shows nothing.
    """
    if printed is None or printed.iteration != places[-1][1]:
        return ""
    total = printed.total
    last = places[-1][0]
    steps = [later[1] - earlier[1] for earlier, later in pairwise(places) if earlier[0] == later[0] == last]
    reached = places[-1][1]
    if not steps or any(step <= 0 for step in steps) or reached < 0 or reached + max(steps) >= total:
        return ""
    return (
        f"logged iterations up to {reached} of {total} in the last epoch"
        if last >= 0
        else (f"logged iterations up to {reached} of {total}")
    )


def _iterations(places: list[Place], declared: int) -> str:
    """Whether the last printed iteration is the last one of its kind before the declared end."""
    numbers = [iteration for _, iteration in places if iteration >= 0]
    steps = [later - earlier for earlier, later in pairwise(numbers)]
    if not numbers or any(step <= 0 for step in steps):
        return ""  # the count restarts in each epoch
    every = max(steps, default=numbers[0])
    if numbers[-1] + max(1, every) >= declared:
        return ""
    return f"logged iterations up to {numbers[-1]} of {declared}"
