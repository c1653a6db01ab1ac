"""Reading in bulk gives what reading line by line gives, to the last bit, whatever the log is made of."""

import random
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.bulk import EXACT, LINES, counted, interleaved, quickly, redrawn, same

pytestmark = pytest.mark.slow


def mix(rng: random.Random, piece: int) -> None:
    chosen = rng.choices(LINES, k=rng.randint(1, 6))
    data = b"\n".join(redrawn(rng.choice(chosen), rng) for _ in range(rng.randint(1, 60)))
    same(data, piece=piece)


@given(st.randoms(use_true_random=False), st.integers(1, 3000))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_random_mixes_of_lines(rng: random.Random, piece: int) -> None:
    mix(rng, piece)


@pytest.mark.full
@given(st.randoms(use_true_random=False), st.integers(1, 20_000))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_many_random_mixes_of_lines(rng: random.Random, piece: int) -> None:
    mix(rng, piece)


@given(
    st.lists(st.sampled_from([*LINES, b"\xff\xfe", b"loss: 1, ips: 2" * 2000]), max_size=40),
    st.binary(max_size=60),
)
@settings(max_examples=40, deadline=None)
def test_any_bytes_may_be_between_lines(lines: list[bytes], rubbish: bytes) -> None:
    same(b"\n".join([*lines, rubbish, *lines]))


def test_a_name_with_many_digits_does_not_hide_the_names_with_one() -> None:
    line = b"[05/01 10:00:09] avg_acc1= 0.4, avg_acc5= 0.8"
    same(line.replace(b"avg_acc", b"avg_acc00") + b"\n" + line)


@pytest.mark.parametrize("form", ["clas", "ocr", "models", "nlp"])
def test_a_single_format_is_read_in_bulk(form: str) -> None:
    rng = random.Random(7)
    same(b"\n".join(redrawn(line, rng) for line in LINES * 12), form)


@given(st.lists(st.floats(allow_nan=False), min_size=4, max_size=30))
def test_every_number_round_trips(values: list[float]) -> None:
    data = "".join(f"[Epoch 1, iter: {at}] loss: {value!r}, lr: 0.5\n" for at, value in enumerate(values)).encode()
    losses = [one for one in quickly(data, "models", 1 << 19) if one.metric == "loss"]
    assert [EXACT.pack(one.value) for one in losses] == [EXACT.pack(value) for value in values]


@given(st.integers(0, 10**16 - 1), st.integers(1, 8))
def test_fixed_point_numbers_are_rounded_as_float_does(digits: int, places: int) -> None:
    text = str(digits).zfill(places + 1)
    text = f"{text[:-places]}.{text[-places:]}"
    data = f"[Epoch 1, iter: 1] loss: {text}\n".encode() * 4
    assert {one.value for one in quickly(data, "models", 1 << 19)} == {float(text)}


def test_ranks_interleaved_give_exact_counts() -> None:
    lines, kinds, losses = counted(interleaved(20_000))
    assert (lines, kinds) == (20_000, {"models": 18_000})
    assert losses == Counter(number % 8 for number in range(20_000) if number % 10 != 9)


@pytest.mark.full
def test_a_million_lines_of_eight_ranks_are_read() -> None:
    lines, kinds, losses = counted(interleaved(1_000_000))
    assert (lines, kinds) == (1_000_000, {"models": 900_000})
    assert losses == Counter(number % 8 for number in range(1_000_000) if number % 10 != 9)
