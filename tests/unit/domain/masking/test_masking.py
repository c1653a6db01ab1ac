"""Secrets are replaced in text; what a model prints stays as it is."""

import time
from pathlib import Path

import pytest

from tipcflow.domain.masking import LineMask, mask, mask_values

GOLDEN = Path(__file__).parents[3] / "golden" / "domain" / "masked.txt"


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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[36mDB_PASSWORD\x1b[0m=\x1b[33mhunter2\x1b[0m \x1b[1mloss\x1b[0m: 1\r\n",
         "\x1b[36mDB_PASSWORD\x1b[0m=\x1b[33m***\x1b[0m \x1b[1mloss\x1b[0m: 1\r\n"),
        ("pass\x1b[1mword\x1b(B: \x1b[4m'hun\x1b[24mter2'\x1b[0m, b",
         "pass\x1b[1mword\x1b(B: \x1b[4m***\x1b[0m, b"),
        ("https://u\x1b[1m:hunter2@h https://u:hunter2\x1b[0m@h", "https://u\x1b[1m:***@h https://u:***\x1b[0m@h"),
        ("\x1b]8;;https://u:p@h\x1b\\link\x1b]8;;\x07", "\x1b]8;;https://u:***@h\x1b\\link\x1b]8;;\x07"),
        ("\x1b[1mtokens/s\x1b[0m: 123", "\x1b[1mtokens/s\x1b[0m: 123"),
    ],
)  # fmt: skip
def test_secrets_between_colors_are_masked_and_colors_are_kept(text: str, shown: str) -> None:
    assert mask(text) == shown
    assert mask(shown) == shown


def test_end_of_a_private_key_hides_the_text_before() -> None:
    assert mask("MIIE\nabcd\n-----END PRIVATE KEY-----\nloss: 1") == "*** -----END PRIVATE KEY-----\nloss: 1"


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        "a", "token", "password", "://", "env {", "password=", "-----BEGIN PRIVATE KEY", " ", "_", "a:", '"',
        "eyJ", "-", "://a:", "://a@b:c@/", "%3A%2F%2F", 'password=\\"', "password={[", "authorization=",
        "curl -u a", "login a password ", "x_token=", "\x1b[0mpassword=x", "-----END PRIVATE KEY-----",
    ],
)  # fmt: skip
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


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize(("text", "shown"), examples())
def test_lines_in_pieces_are_masked_like_whole_text(text: str, shown: str, size: int) -> None:
    lines = LineMask()
    line = f"{text}\nnext\n"
    assert "".join(lines.feed(line[at : at + size]) for at in range(0, len(line), size)) == f"{shown}\nnext\n"


@pytest.mark.parametrize("kind", ["PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
def test_lines_within_a_colored_private_key_are_hidden(kind: str) -> None:
    lines = LineMask()
    shown = lines.feed(
        f"\x1b[1m-----BEGIN\x1b[0m {kind}-----\nlQOY\n-----END \x1b[1m{kind}-----\x1b[0m\nloss: 1\n"
    )
    assert shown == f"\x1b[1m-----BEGIN\x1b[0m {kind}----- ***\n\n\nloss: 1\n"


@pytest.mark.parametrize(
    ("first", "then"),
    [("password=hunter2", ",hunter2"), ("password", "=hunter2"), ("password='hunter2 ", "hunter2'")],
)
def test_a_value_split_in_an_endless_line_is_masked(first: str, then: str) -> None:
    lines = LineMask()
    shown = lines.feed("x " * LineMask.LONGEST + first) + lines.feed(f"{then} loss: 1\n")
    assert shown.endswith("password=*** loss: 1\n")


def test_end_of_a_private_key_is_found_across_pieces() -> None:
    lines = LineMask()
    lines.feed("-----BEGIN PRIVATE KEY-----" + "x" * LineMask.LONGEST + "-----END PRIV")
    assert lines.feed("ATE KEY-----\nloss: 1\n") == "\nloss: 1\n"


def test_text_that_begins_within_a_private_key_hides_its_lines() -> None:
    key = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n" * 2
    assert LineMask(cut=True).feed(f"{key}loss: 1\n") == "\n\nloss: 1\n"
    assert LineMask(cut=True).feed(f"wggSj\n{key}") == "wggSj\n\n\n"
    later = f"epoch 1\nloss: 1\n{key}"
    assert LineMask(cut=True).feed(later) == later
    assert LineMask().feed(key) == key
    assert LineMask(cut=True).feed(f"{'0a' * 32}\n") == f"{'0a' * 32}\n"


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


def test_a_value_is_masked_by_its_name() -> None:
    values = {"db_password": "hunter2", "name": "resnet", "url": "https://ci:hunter2@host", "": "", "loss": 1.5}
    values["precision"] = ""
    assert mask_values(values) == values | {"db_password": "***", "url": "https://ci:***@host"}
    assert mask_values({"a": [{"api_key": ("hunter2",)}]}) == {"a": [{"api_key": ("***",)}]}
