"""Failed logs: the rank that the launcher names, and the lines that users see."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipcflow.parse import error_excerpt, parse_launch

GOLDEN = Path(__file__).parents[2] / "golden" / "parse"
FAILED = (GOLDEN / "launch_failed.log").read_text()


def test_the_launcher_names_the_root_cause() -> None:
    found = parse_launch(FAILED)
    assert found is not None
    assert (found.rank, found.code, found.exit_code, found.log) == (0, 1, 1, "log/workerlog.0")
    assert not found.is_collateral


def test_a_worker_that_failed_because_of_a_peer_is_a_collateral_failure() -> None:
    text = FAILED.replace(" code 1 log", " code -6 log").replace("Exit code 1", "Exit code 250")
    found = parse_launch(text)
    assert found is not None
    assert found.is_collateral


@pytest.mark.parametrize(
    "text",
    [
        "",
        "LAUNCH INFO 2026-11-21 09:30:14,344 Pod completed\nLAUNCH INFO 2026-11-21 09:30:14,345 Exit code 0\n",
        "epoch 1: 3 samples failed to load, Pod failed is only quoted\n",
    ],
)
def test_log_without_a_failure_gives_none(text: str) -> None:
    assert parse_launch(text) is None


def test_an_excerpt_is_taken_from_a_launched_training() -> None:
    assert error_excerpt(FAILED) == (GOLDEN / "error_excerpt_launch.txt").read_text().rstrip("\n")


def test_excerpt_takes_the_last_traceback_and_its_message() -> None:
    text = """Traceback (most recent call last):
  File "a.py", line 1, in <module>
KeyError: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "b.py", line 7, in <module>
    main()
  File "b.py", line 3, in main
    raise RuntimeError
RuntimeError: first line
  and the rest of it
PADDLE_TRAINERS_NUM=2
done
"""
    assert error_excerpt(text).splitlines()[:3] == [
        '  File "b.py", line 3, in main',
        "    raise RuntimeError",
        "RuntimeError: first line",
    ]


def test_excerpt_without_a_traceback_is_the_end_without_dumps() -> None:
    secret = "AWS_" + "SECRET_ACCESS_KEY=abc"
    text = (
        f"loading\n\n{secret}\nenv {{'PASSWORD': 'x'}}\nmy password is 123\nexport HOME=/root\nout of cheese\n\n"
    )
    assert error_excerpt(text) == "loading\nout of cheese"
    assert error_excerpt("") == ""
    assert error_excerpt(" \n\n") == ""


def test_excerpt_is_short() -> None:
    text = "".join(f"line {number} {'x' * 1000}\n" for number in range(100))
    lines = error_excerpt(text).split("\n")
    assert len(lines) == 8
    assert lines[-1].startswith("line 99 ")
    assert max(map(len, lines)) == 300


@given(st.text(max_size=300))
def test_any_text_is_read_without_an_error(text: str) -> None:
    parse_launch(text)
    excerpt = error_excerpt("Traceback (most recent call last):\n" + text)
    assert len(excerpt.split("\n")) <= 8
    assert "\x1b[" not in excerpt


def test_the_reason_is_not_lost_among_lines_of_a_training_that_succeeded() -> None:
    lines = [f"[Epoch 1, iter: {number}] top1: 0.5, loss: 2.08571" for number in range(20)]
    assert error_excerpt("\n".join([*lines, "training went wrong"])) == "training went wrong"
    assert error_excerpt("\n".join(lines)).count("\n") == 7


def test_secrets_in_an_excerpt_are_masked() -> None:
    text = "Traceback (most recent call last):\n  x\nHTTPError: 403 for url: https://ci:hunter2@h/w?X-Amz-Signature=12\n"
    assert error_excerpt(text).splitlines()[-1] == "HTTPError: 403 for url: https://ci:***@h/w?X-Amz-Signature=***"


def test_lines_of_a_private_key_are_not_in_an_excerpt() -> None:
    key = "".join(f"MIIE{number}\n" for number in range(20))
    assert error_excerpt(f"-----BEGIN PRIVATE KEY-----\n{key}") == "-----BEGIN PRIVATE KEY----- ***"
    assert "MIIE" not in error_excerpt(f"{key}-----END PRIVATE KEY-----\n")
