"""Lines of one layout, many at once, give what the same lines give one by one, also when some are mangled."""

import random
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.bulk import EXACT, LINES, counted, quickly, redrawn, same

from tipcflow.parse.bulk import layouts
from tipcflow.parse.bulk.summary import summarize_log
from tipcflow.parse.chunks import Lines, chunks, newlines
from tipcflow.parse.text import last_state
from tipcflow.parse.training.stream import numbered_lines

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def few_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that short logs have layouts."""
    monkeypatch.setattr(layouts, "WORTH", 3)


def same_widths(line: bytes, rng: random.Random) -> bytes:
    return bytes(rng.choice(b"0123456789") if 48 <= byte <= 57 else byte for byte in line)


def mangled(line: bytes, rng: random.Random) -> bytes:
    """The line with a byte more, less, or other than it was."""
    if not line:
        return line
    at = rng.randrange(len(line))
    other = bytes([rng.choice(b"0123456789:,. []\x1b\r\xff-+enaf/;@`")])
    return rng.choice(
        (line[:at] + other + line[at + 1 :], line[:at] + line[at + 1 :], line[:at] + other + line[at:])
    )


def log_of_few_layouts(rng: random.Random) -> bytes:
    chosen = rng.choices(LINES, k=rng.randint(1, 4))
    made = []
    for _ in range(rng.randint(20, 120)):
        line = rng.choice(chosen)
        how = rng.random()
        made.append(
            same_widths(line, rng) if how < 0.85 else redrawn(line, rng) if how < 0.93 else mangled(line, rng)
        )
    return b"\n".join(made)


@given(st.randoms(use_true_random=False), st.integers(500, 8000))
@settings(max_examples=8, suppress_health_check=list(HealthCheck))
def test_logs_of_few_layouts(rng: random.Random, piece: int) -> None:
    same(log_of_few_layouts(rng), piece=piece)


@pytest.mark.full
@given(st.randoms(use_true_random=False), st.integers(200, 20_000))
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
def test_many_logs_of_few_layouts(rng: random.Random, piece: int) -> None:
    same(log_of_few_layouts(rng), piece=piece)


@pytest.mark.parametrize("line", LINES)
def test_every_known_line_is_read_in_its_layout(line: bytes) -> None:
    rng = random.Random(line)
    same(b"\n".join(same_widths(line, rng) for _ in range(30)), piece=6 * (len(line) + 1))


def test_most_lines_are_read_by_known_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    report: Counter[str] = Counter()
    split = layouts.Layouts.split

    def watched(self: layouts.Layouts, lines: Lines) -> tuple[list[layouts.LayoutRows], layouts.Indices]:
        found, rest = split(self, lines)
        report.update(known=sum(len(one.lines) for one in found), others=len(rest))
        return found, rest

    monkeypatch.setattr(layouts.Layouts, "split", watched)
    line = b"[Epoch 10, iter: 1000] loss: 0.25, lr: 0.5, batch_cost: 0.25 sec\n"
    account = summarize_log(line * 100 for _ in range(10))
    assert account.kinds == {"models": 1000}
    assert report == {"others": 100, "known": 900}


@pytest.mark.parametrize("sign", ["", "-", "+"])
@pytest.mark.parametrize("part", range(9))
def test_every_number_of_every_width_round_trips(sign: str, part: int) -> None:
    rng = random.Random(part)
    for whole in range(1, 9):
        texts = []
        for _ in range(30):
            # Many nines: near the end of what a double holds exactly.
            digits = "".join(rng.choices(rng.choice(("0123456789", "9", "99998")), k=whole + part))
            texts.append(f"{sign}{digits[:whole]}" + (f".{digits[whole:]}" if part else ""))
        data = "".join(f"[Epoch 1, iter: 2] loss: {text}, lr: 0.5\n" for text in texts).encode()
        losses = [one.value for one in quickly(data, "models", len(data) // 2) if one.metric == "loss"]
        assert [EXACT.pack(value) for value in losses] == [EXACT.pack(float(text)) for text in texts]


@pytest.mark.parametrize("other", [b"/", b":", b" ", b"\xff", b"\x00", b"\x1b", b"a", b"."])
def test_lines_similar_to_a_layout_are_read_alone(other: bytes) -> None:
    line = b"[Epoch 10, iter: 1000] loss: 0.25, top1: 12.5, batch_cost: 0.25 sec\n"
    near = [line[:at] + other + line[at + 1 :] for at in range(len(line) - 1)]
    same(line * 10 + b"".join(near) + line * 10, piece=len(line) * 10)


def test_steering_lines_may_be_among_lines_of_a_layout() -> None:
    line = b"[2022/08/08 16:29:00] ppocr INFO: hmean:0.8670120239257812\n"
    ckpt = b"[2022/08/08 16:29:00] ppocr INFO: metric in ckpt ***************\n"
    best = b"[2022/08/08 16:29:00] ppocr INFO: metric eval ***************\n"
    data = line * 10 + line * 4 + ckpt + line * 5 + line * 10 + best + line * 10 + line * 10
    same(data, piece=len(line) * 10)


@given(st.lists(st.sampled_from([b"\n", b"a", b"\n\n", b"b" * 7, b"c" * 100]), max_size=40))
def test_ends_of_lines_are_found_across_parts(parts: list[bytes]) -> None:
    text = b"".join(parts)
    assert newlines(np.frombuffer(text, np.uint8)).tolist() == [at for at, byte in enumerate(text) if byte == 10]


def endless(parts: list[bytes], piece: int) -> Iterator[bytes]:
    text = b"".join(parts)
    return (text[at : at + piece] for at in range(0, len(text), piece))


@pytest.mark.parametrize(
    ("long", "read"),
    [
        (b"x" * 5_000_000, b""),
        (b"bar 1\r" * 900_000 + b"[Epoch 1, iter: 2] loss: 3", b"3"),
        (b"[Epoch 1, iter: 2] loss: 3" + b"\r" * 3_000_000, b"3"),
        (b"[Epoch 1, iter: 2] loss: 3\r" + b"y" * 3_000_000, b""),
    ],
)
def test_a_line_without_end_is_kept_no_longer_than_needed(long: bytes, read: bytes) -> None:
    after = b"[Epoch 1, iter: 2] loss: 4\n"
    parts = [after, long, b"\n", after, b"\n", after]
    kept = list(chunks(endless(parts, 1 << 17)))
    assert sum(len(chunk) for _, chunk in kept) < 1_500_000
    account = summarize_log(endless(parts, 1 << 17))
    assert (account.lines, account.kinds["models"], account.blank) == (5, 3 + bool(read), 1)
    starts = [offset for offset, line in numbered_lines(endless(parts, 1 << 17)) if last_state(line) == after[:-1]]
    assert starts == [0, len(after) + len(long) + 1, 2 * len(after) + len(long) + 2]


def test_ranks_in_layouts_are_separated() -> None:
    line = "[rank {}] [Epoch 1, iter: 2] loss: 0.25\n"
    data = "".join(line.format(number % 8) for number in range(4000)).encode()
    lines, kinds, losses = counted(data)
    assert (lines, kinds, losses) == (4000, {"models": 4000}, Counter(dict.fromkeys(range(8), 500)))
