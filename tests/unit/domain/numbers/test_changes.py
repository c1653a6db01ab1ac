import pytest

from tipcflow.domain.numbers.changes import ChangeKind, Origin, OriginChange, changes, read_changes, since

GOOD = Origin(
    framework="paddle 3.3.1",
    suite_commit="a1b2c3d4e5f6a7b8",
    suite_sha256="11" * 32,
    nodes=("a", "b"),
    drivers=("535.104.05",),
    cuda=("12.6",),
)


def _with(**values: object) -> Origin:
    return GOOD.model_copy(update=values)


@pytest.mark.parametrize(
    ("now", "messages"),
    [
        (_with(framework="paddle 3.4.0"), ["framework 3.3.1 -> 3.4.0"]),
        (_with(framework="torch 2.9"), ["framework paddle 3.3.1 -> torch 2.9"]),
        (_with(suite_commit="d4e5f6a7" * 5), ["suite a1b2c3d -> d4e5f6a"]),
        (_with(suite_commit=f"{GOOD.suite_commit}+dirty"), ["suite a1b2c3d -> a1b2c3d with local changes"]),
        (_with(suite_sha256="22" * 32), ["suite content 1111111 -> 2222222"]),
        (_with(nodes=("b", "a")), ["nodes a+b -> b+a"]),
        (_with(drivers=("570.1",), cuda=("12.9",)), ["GPU driver 535.104.05 -> 570.1", "CUDA 12.6 -> 12.9"]),
        (GOOD, []),
        (Origin(), []),
    ],
)
def test_changes_name_the_changed_facts(now: Origin, messages: list[str]) -> None:
    assert changes(GOOD, now) == messages


def test_a_phrase_names_the_last_good_run() -> None:
    found = changes(GOOD, _with(framework="paddle 3.4.0", suite_commit="d4e5f6a7"))
    assert since("R", found) == "since run R: framework 3.3.1 -> 3.4.0, suite a1b2c3d -> d4e5f6a"
    assert since("R", []) == "since run R framework, suite, nodes and driver are the same"


@pytest.mark.parametrize("kind", ChangeKind)
def test_difference_survives_a_round_trip(kind: ChangeKind) -> None:
    difference = OriginChange(kind, "1.0", "2.0")
    assert OriginChange.parse(str(difference)) == difference


@pytest.mark.parametrize("text", ["", "framework", "framework 1", "weather 1 -> 2"])
def test_parse_refuses_other_texts(text: str) -> None:
    with pytest.raises(ValueError, match="is not a difference between runs"):
        OriginChange.parse(text)


def test_stored_texts_of_another_form_are_left_out() -> None:
    read = read_changes(["framework changed", "suite a1b2c3d -> d4e5f6a with local changes", ""])
    assert read == [OriginChange(ChangeKind.SUITE, "a1b2c3d", "d4e5f6a with local changes")]
