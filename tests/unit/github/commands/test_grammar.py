"""The grammar of commands: every valid form, and one line with the valid form for the others."""

import random

import pytest

from tipcflow.github.commands import FORMS, Ab, Accept, Approve, Cancel, Command, Help, Rerun, Run, Wrong, parse

SHA = "a" * 40


@pytest.mark.parametrize(
    ("comment", "command"),
    [
        ("/tipc run", Run()),
        ("  /tipc   run  ", Run()),
        ("/tipc run whole", Run(whole=True)),
        ("/tipc run toy/m/train_infer_python", Run(("toy/m/train_infer_python",))),
        ("/tipc run whole toy/* other/m/*", Run(("toy/*", "other/m/*"), whole=True)),
        ("/tipc rerun", Rerun()),
        ("/tipc rerun failed", Rerun(failed=True)),
        ("/tipc rerun toy/m/f", Rerun(("toy/m/f",))),
        ("/re-run all-failed", Rerun(failed=True)),
        ("/re-run toy/m/f", Rerun(("toy/m/f",))),
        ("/re-run inference", Rerun(("inference",))),
        ("/tipc ab", Ab()),
        ("/tipc ab toy/m/f toy/*", Ab(("toy/m/f", "toy/*"))),
        ("/tipc cancel\r\nthe rest is text", Cancel()),
        ("/tipc accept ips because new data", Accept("ips", "new data")),
        ("/tipc accept eval.top1 because better", Accept("eval.top1", "better")),
        (f"/tipc approve {SHA}", Approve(SHA)),
        ("/tipc help", Help()),
        ("\n\n/tipc help", Help()),
    ],
)
def test_valid_commands_are_parsed(comment: str, command: Command) -> None:
    assert parse(comment) == command


@pytest.mark.parametrize(
    ("comment", "verb"),
    [
        ("/tipc", "help"),
        ("/tipc run @octocat", "run"),
        ("/tipc run -rf", "run"),
        ("/tipc run " + "a/b/c " * 21, "run"),
        ("/tipc rerun failed toy/m/f", "rerun"),
        ("/tipc ab @octocat", "ab"),
        ("/tipc cancel now", "cancel"),
        ("/tipc accept ips", "accept"),
        ("/tipc accept ips because", "accept"),
        ("/tipc accept ips new data is better", "accept"),
        ("/tipc accept 1;2 because x", "accept"),
        ("/tipc approve", "approve"),
        ("/tipc approve abcdef12", "approve"),
        (f"/tipc approve {SHA} {SHA}", "approve"),
        ("/tipc approve HEAD", "approve"),
        ("/tipc help me", "help"),
    ],
)
def test_an_error_is_one_line_with_the_valid_form(comment: str, verb: str) -> None:
    wrong = parse(comment)
    assert isinstance(wrong, Wrong)
    assert f"`{FORMS[verb]}`" in wrong.reply
    assert "\n" not in wrong.reply


def test_an_unknown_command_lists_all() -> None:
    wrong = parse("/tipc runs")
    assert isinstance(wrong, Wrong)
    assert all(form in wrong.reply for form in FORMS.values())


@pytest.mark.parametrize(
    "comment",
    [
        "",
        "LGTM",
        "please /tipc run",
        "/tipcx run",
        "/TIPC run",
        "/re-runs all",
        "> /tipc run",
        "`/tipc run`",
        "/retest",
    ],
)
def test_other_comments_are_not_commands(comment: str) -> None:
    assert parse(comment) is None


def test_only_the_first_line_counts() -> None:
    assert parse("thanks\n/tipc cancel") is None


def test_a_reply_cannot_carry_markup_or_mentions() -> None:
    for comment in ("/tipc @everyone", "/tipc `x`](http://evil)", "/tipc run <img/src=x>", "/tipc run !#123"):
        wrong = parse(comment)
        assert isinstance(wrong, Wrong)
        quoted = wrong.reply.split("`")[1]
        assert not set(quoted) & set("@<>[]()#!`")


def test_random_comments_never_raise() -> None:
    chance = random.Random(3)
    words = [
        "/tipc",
        "/re-run",
        "run",
        "rerun",
        "failed",
        "because",
        "accept",
        "a/b",
        "\x00",
        "é",
        "\n",
        "approve",
        SHA,
    ]
    for _ in range(3000):
        text = " ".join(chance.choices(words, k=chance.randint(0, 6)))
        found = parse(text)
        assert found is None or isinstance(found, Wrong | Run | Rerun | Cancel | Accept | Approve | Help)
