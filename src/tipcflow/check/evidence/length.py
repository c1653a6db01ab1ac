"""Length of a training by its ranks' logs, compared with its peers and the params file."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tipcflow.check.select import RankKey, iterations
from tipcflow.domain import Expectation, Facts, Measurement, Step

# How much fewer lines than earlier epochs the last one may have where those differ among themselves, too.
_SHARE = 0.8
Place = tuple[int, int]


@dataclass(frozen=True)
class Short:
    """A rank whose log ends too early, or that trained too long, in words."""

    node: str
    rank: int
    why: str


def shortfalls(facts: Facts, step: Step, piece: Expectation) -> list[Short]:
    """Problems with the length of a training, rank by rank; empty if it is as declared.

    Suites print every N iterations, so one line more or less per epoch is not a difference.
    """
    logged = {key: _places(lines) for key, lines in iterations(facts, step).items()}
    logged = {key: places for key, places in logged.items() if places}
    found = {(one.node, one.rank): one for one in _against_peers(logged)}
    for (node, rank), places in logged.items():
        why = _against_plan(places, piece)
        if why and (node, rank) not in found:
            found[node, rank] = Short(node, rank, why)
    return [found[key] for key in sorted(found, key=lambda key: (key[1], key[0]))]


def _places(lines: Sequence[Measurement]) -> list[Place]:
    """(epoch, iteration) of a rank's training lines, each once, in their order; none where neither is printed."""
    found = {
        (one.epoch, one.iteration): None
        for one in lines
        if max(one.iteration, one.epoch) >= 0 and not one.metric.startswith(("epoch.", "best.", "batch."))
    }
    return list(found)


def _against_peers(logged: Mapping[RankKey, list[Place]]) -> list[Short]:
    counts = {key: Counter(epoch for epoch, _ in places) for key, places in logged.items()}
    most: Counter[int] = Counter()
    for each in counts.values():
        most |= each
    longest = max((len(places) for places in logged.values()), default=0)
    return [
        Short(key[0], key[1], f"logged {len(logged[key])} of {longest} iterations that another rank logged")
        for key, each in counts.items()
        if any(each[epoch] < count - 1 for epoch, count in most.items())
        or (len(most) > 1 and set(most) - set(each))
    ]


def _against_plan(places: list[Place], piece: Expectation) -> str:
    if piece.iterations:
        return _iterations(places, piece.iterations)
    epochs = Counter(epoch for epoch, _ in places if epoch >= 0)
    if not piece.epochs or not epochs:
        return ""
    # Epochs are counted from 0 or from 1; which, the first ones tell.
    first = min(epochs)
    trained = max(epochs) - min(first, 1) + 1
    if trained < piece.epochs:
        return f"logged {trained} of {piece.epochs} epochs"
    if trained > piece.epochs and first <= 1:
        return f"logged {trained} epochs; {piece.epochs} are declared"
    return _cut_short(epochs)


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
