"""Which lines of a log belong to an attempt, where an earlier attempt wrote into the same file."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from tipcflow.domain import Phase
from tipcflow.execute.kept_logs import ZIPPED, open_kept
from tipcflow.parse import Sample

_PIECE = 1 << 20
_Place = tuple[int, int]


def own_samples(samples: Iterable[Sample], path: Path, folder: Path) -> list[Sample]:
    """The samples of a log without those that an earlier attempt of the step logged into it.

    A script that opens its log for appending leaves the earlier attempt's lines at its beginning. They are known
    by two signs: the file begins with all that was fetched of it then, and what follows goes back, to an iteration
    before the last one there or to that one's own numbers again, of any metric of any rank. A log that was written
    anew and only looks the same goes on, and counts whole. Logs without iterations are looked at by their epochs.

    Where numbers of one iteration or epoch are logged several times anyway, one that comes again is no sign, and
    an attempt that ended within the epoch where the next begins cannot be told from a log that was written anew.
    Then all of it counts: what is left out is missed by nobody, and a median hardly minds what is counted twice.

    Args:
        path: the log, below `folder`.
        folder: of the step and node; earlier attempts were put aside beside the step's as `<step>~<attempt>`.
    """
    found = list(samples)
    trained = [one for one in found if one.phase is Phase.TRAIN]
    lines = [one for one in trained if one.iteration >= 0] or [one for one in trained if one.epoch >= 0]
    for start in sorted(_earlier_sizes(path, folder), reverse=True):
        before = [one for one in lines if one.offset < start]
        after = [one for one in lines if one.offset >= start]
        if before and after and _goes_back(before, after):
            return [one for one in found if one.offset >= start]
    return found


def _goes_back(before: list[Sample], after: list[Sample]) -> bool:
    """Whether any number of any rank does: they print at different times, and not all of them in every line."""
    old, new = _places(before), _places(after)
    return any(_one_goes_back(old[key], new[key]) for key in old.keys() & new.keys())


def _one_goes_back(before: list[_Place], after: list[_Place]) -> bool:
    last, first = before[-1], after[0]
    if first != last:
        return first < last
    return not _repeats(before) and not _repeats(after)


def _places(samples: list[Sample]) -> dict[tuple[str, int], list[_Place]]:
    """(metric, rank) -> (epoch, iteration) of its numbers, as they were logged."""
    found: dict[tuple[str, int], list[_Place]] = {}
    for one in samples:
        found.setdefault((one.metric, one.rank), []).append((one.epoch, one.iteration))
    return found


def _repeats(places: list[_Place]) -> bool:
    return len(set(places)) < len(places)


def _earlier_sizes(path: Path, folder: Path) -> Iterator[int]:
    """Sizes of what earlier attempts left of the same log, as far as this one begins with it."""
    step = folder.parent
    for aside in step.parent.glob(f"{_escaped(step.name)}~*"):
        earlier = aside / folder.name / path.relative_to(folder)
        if earlier.is_file() or earlier.with_name(earlier.name + ZIPPED).is_file():
            size = _common(earlier, path)
            if size:
                yield size


def _escaped(name: str) -> str:
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in name)


def _common(earlier: Path, path: Path) -> int:
    """The whole size of the earlier file when the other begins with it, else 0."""
    size = 0
    with open_kept(earlier) as old, open_kept(path) as new:
        while piece := old.read(_PIECE):
            if new.read(len(piece)) != piece:
                return 0
            size += len(piece)
    return size
