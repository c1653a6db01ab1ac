"""Secrets are replaced in text; what a model prints stays as it is."""

import time
from pathlib import Path

import pytest

from tipcflow.domain.masking import LineMask, mask

GOLDEN = Path(__file__).parents[2] / "golden" / "domain" / "masked.txt"


def examples() -> list[tuple[str, str]]:
    lines = [line for line in GOLDEN.read_text().splitlines() if not line.startswith("# ")]
    pairs = zip(lines[::2], lines[1::2], strict=True)
    return [(text, text if shown == "=" else shown.removeprefix(">>> ")) for text, shown in pairs]


@pytest.mark.parametrize(("text", "shown"), examples())
def test_secrets_in_text_are_masked(text: str, shown: str) -> None:
    assert mask(text) == shown
    assert mask(shown) == shown, "masking twice shows the same"


def test_a_private_key_is_masked_over_its_lines_even_without_its_end() -> None:
    key = "x\n-----BEGIN PRIVATE KEY-----\nMIIE\nabcd\n"
    assert mask(key) == "x\n-----BEGIN PRIVATE KEY----- ***"
    assert mask(key + "-----END PRIVATE KEY-----\ny") == "x\n-----BEGIN PRIVATE KEY----- ***\ny"


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    ["a", "token", "password", "://", "env {", "password=", "-----BEGIN PRIVATE KEY", " ", "_", "a:", '"', "eyJ"],
)
def test_masking_takes_linear_time(piece: str) -> None:
    text = piece * (1_000_000 // len(piece)) + " token"
    began = time.process_time()
    mask(text)
    assert time.process_time() - began < 10


LOG = (
    "epoch 1\n"
    "50 %\r100 %\r\n"
    "url: https://host/x?token=SECRET123&part=2\n"
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN\nBgkqhkiG\n-----END PRIVATE KEY-----\n"
    "env {'DB': 'hunter2', 'TOKEN': 'hunter2'}\n"
    "Authorization: Bearer hunter2hunter2\n"
    "the end"
)
SHOWN = (
    "epoch 1\n"
    "50 %\r100 %\r\n"
    "url: https://host/x?token=***&part=2\n"
    "-----BEGIN PRIVATE KEY----- ***\n\n\n\n"
    "env {…}\n"
    "Authorization: ***\n"
    "the end"
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_log_in_pieces_is_masked_wherever_the_pieces_end(size: int) -> None:
    lines = LineMask()
    shown = "".join(lines.feed(LOG[at : at + size]) for at in range(0, len(LOG), size)) + lines.flush()
    assert shown.replace("\r\n", "\n") == SHOWN.replace("\r\n", "\n")


def test_the_rest_of_a_long_environment_dump_is_not_shown() -> None:
    lines = LineMask()
    shown = lines.feed("env {'A': '" + "x" * LineMask.LONGEST) + lines.feed("', 'B': 'hunter2'}\nnext\n")
    assert shown == "env {…}\nnext\n"


@pytest.mark.slow
@pytest.mark.parametrize("size", [1_000, 4_099, 70_001, 300_000])
def test_secret_in_an_endless_line_is_masked_across_pieces(size: int) -> None:
    line = "loss: 0.5 password=hunter2hunter2 https://host/x?token=tok123tok&b=1 'a=b' " * 4_000
    lines = LineMask()
    pieces = [lines.feed(line[at : at + size]) for at in range(0, len(line), size)]
    assert all(len(piece) <= size + LineMask.LONGEST for piece in pieces)
    assert "".join(pieces) + lines.flush() == mask(line)


def test_a_finished_line_is_shown_at_once() -> None:
    lines = LineMask()
    assert lines.feed("loss: 1\nloss: 2") == "loss: 1\n"
    assert lines.flush() == "loss: 2"
    assert lines.flush() == ""
