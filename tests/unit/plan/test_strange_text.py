"""Values that a shell, a terminal or a file system takes for something else are refused or named."""

from collections.abc import Callable

import pytest

from tipcflow.domain import Compat, ConfigError, Plan
from tipcflow.params import load_dialect
from tipcflow.params.limits import MAX_ALTERNATIVES
from tipcflow.params.lint.rules import lint_text
from tipcflow.params.lint.subject import Severity, Subject
from tipcflow.params.lint.values import listed_twice
from tipcflow.params.shell import ShellAct, shell_acts
from tipcflow.plan import plan_commands

Make = Callable[..., Plan]


def with_value(text: str, key: str, value: str) -> str:
    lines = text.split("\n")
    place = next(n for n, line in enumerate(lines) if line.startswith(f"{key}:"))
    return "\n".join([*lines[:place], f"{key}:{value}", *lines[place + 1 :]])


def errors(text: str) -> set[str]:
    findings = lint_text(text, file="f", dialect=load_dialect("models/template"))
    return {each.rule for each in findings if each.severity is Severity.ERROR} - {"ips-short", "gpu-paired"}


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ("a # b", "#"),
        ("it's", "unbalanced quote"),
        ("x; touch f", "; or &"),
        ("x && y", "; or &"),
        ("$(touch f)", "$("),
        ('"$(touch f)"', "$("),
        ("`touch f`", "$("),
        ("x > f", "< or >"),
        ("f(x)", "( or )"),
    ],
)
def test_value_that_breaks_a_command_is_refused_in_spec(plan: Make, norm_text: str, value: str, word: str) -> None:
    text = with_value(norm_text, "--pretrained", value)
    with pytest.raises(ConfigError) as caught:
        plan(text)
    assert (caught.value.line, caught.value.key, caught.value.found) == (10, "--pretrained", value)
    assert word in str(caught.value)
    made = plan(text, compat=Compat.BASH)
    assert [(each.id, each.line) for each in made.quirks if each.id == "shell-breaks"] == [("shell-breaks", 10)]
    assert "metacharacter" in errors(text)


@pytest.mark.parametrize(
    "value", ["'a # b; $(x)'", "a#b", "[3,224]", "a=b", "x~", "'(x)'", r"a\;b", "-c x.yml -o y=z"]
)
def test_value_that_a_shell_leaves_alone_is_planned(plan: Make, norm_text: str, value: str) -> None:
    made = plan(with_value(norm_text, "--pretrained", value))
    assert not any(each.id == "shell-breaks" for each in made.quirks)


@pytest.mark.parametrize("value", ["~/x.pdparams", "$HOME/x", "${DATA}/x", r"a\ b", "x*", "{a,b}"])
def test_value_that_a_shell_expands_is_a_quirk(plan: Make, norm_text: str, value: str) -> None:
    quirks = plan(with_value(norm_text, "--pretrained", value)).quirks
    assert [each.line for each in quirks if each.id == "shell-expands"] == [10]


def test_key_that_breaks_a_command_is_refused(plan: Make, norm_text: str) -> None:
    text = norm_text.replace("--img-path:", "--img-path;rm x:")
    with pytest.raises(ConfigError, match="; or &"):
        plan(text)
    assert "metacharacter" in errors(text)


@pytest.mark.parametrize(
    ("character", "name"),
    [
        ("\0", "NUL"),
        ("\x1b", "ESCAPE"),
        ("\u200b", "ZERO WIDTH SPACE"),
        ("\u00a0", "NO-BREAK SPACE"),
        ("\u2028", "LINE SEPARATOR"),
        ("\u202e", "RIGHT-TO-LEFT OVERRIDE"),
        ("\ufeff", "ZERO WIDTH NO-BREAK SPACE"),
    ],
)
def test_invisible_character_is_refused_and_found(plan: Make, norm_text: str, character: str, name: str) -> None:
    text = with_value(norm_text, "--pretrained", f"a{character}b")
    for compat in Compat:
        with pytest.raises(ConfigError, match="character 15 is invisible") as caught:
            plan(text, compat=compat)
        assert caught.value.line == 10
        assert name in str(caught.value)
    assert errors(text) == {"invisible-character"}


@pytest.mark.parametrize("entry", ["١", "007", "0,٢", "$(x),b;0,1", "-o,b;0", "a b,c;0"])
def test_entry_of_gpu_list_has_ascii_numbers_and_addresses(plan: Make, norm_text: str, entry: str) -> None:
    text = with_value(norm_text, "gpu_list", entry)
    with pytest.raises(ConfigError) as caught:
        plan(text)
    assert caught.value.line == 4
    assert errors(text)


@pytest.mark.parametrize("name", ["../../../etc", "/abs/x", "-rf", "a/../b", ".."])
def test_model_name_stays_in_the_output_folder(plan: Make, norm_text: str, name: str) -> None:
    text = with_value(norm_text, "model_name", name)
    with pytest.raises(ConfigError, match="not a folder name") as caught:
        plan(text)
    assert caught.value.line == 2
    assert "model-name" in errors(text)


@pytest.mark.parametrize(
    ("key", "count", "message"),
    [("--precision", 100_000, "the list is too long"), ("--cpu-threads", 100_000, "the list is too long")],
)
def test_long_list_is_refused_before_any_loop(
    plan: Make, norm_text: str, key: str, count: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = with_value(norm_text, key, "|".join(["a"] * count))
    loops: list[object] = []
    monkeypatch.setattr("tipcflow.plan.source.legs.product", lambda *lists: loops.append(lists) or iter(()))
    monkeypatch.setattr("tipcflow.plan.source.variants.Point", lambda *parts: loops.append(parts))
    for compat in Compat:
        with pytest.raises(ConfigError, match=message):
            plan(text, compat=compat)
    with pytest.raises(ConfigError, match=message):
        plan_commands(text, file="f", dialect=load_dialect("models/template"), mode="lite_train_lite_infer")
    assert loops == []
    assert errors(text) == {"list-length"}


def test_lists_that_multiply_are_refused(plan: Make, norm_text: str) -> None:
    text = with_value(norm_text, "--cpu-threads", "|".join(map(str, range(1, 200))))
    lines = text.split("\n")
    lines[43] = "--batch-size:" + "|".join(map(str, range(1, 200)))
    with pytest.raises(ConfigError, match="multiply") as caught:
        plan("\n".join(lines))
    assert caught.value.line in (43, 44)
    assert "legs" in caught.value.found


class Counted(str):
    """A text that counts its comparisons."""

    __slots__ = ()
    work = 0

    def __eq__(self, other: object) -> bool:
        Counted.work += 1
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        return str.__hash__(self)


def test_work_of_lint_grows_like_the_list(norm_text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in comparisons, not in seconds."""
    work = []
    for count in (500, 1000):
        items = [Counted(number) for number in range(count)]
        monkeypatch.setattr(Subject, "items", lambda self, name, items=items: items)
        Counted.work = 0
        assert listed_twice(Subject(norm_text, load_dialect("models/template"))) == []
        work.append(Counted.work)
    assert work[1] <= 2 * work[0] + 100


def test_work_of_the_search_for_a_misplaced_line_grows_like_the_file(
    norm_text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tipcflow.params.lint.shape as shape

    counts = []
    real = shape.check_layout
    for extra in (1000, 2000):
        seen = [0]

        def count(lines: tuple[object, ...], *, seen: list[int] = seen, **rest: object) -> None:
            seen[0] += len(lines)
            real(lines, **rest)

        monkeypatch.setattr(shape, "check_layout", count)
        text = norm_text.replace("model_name", "no_name", 1) + "x:y\n" * extra
        lint_text(text, file="f", dialect=load_dialect("models/template"))
        counts.append(seen[0])
    assert counts[1] < 2.2 * counts[0]


def test_list_of_the_largest_size_is_planned(plan: Make, norm_text: str) -> None:
    threads = "|".join(map(str, range(1, MAX_ALTERNATIVES + 1)))
    assert plan(with_value(norm_text, "--cpu-threads", threads)).steps


def test_effects_of_the_shell_are_reported() -> None:
    acts = shell_acts("a $X ~/b #c")
    assert [each.what for each in acts] == ["#", "$", "~"]
    assert [each.kind for each in acts] == [ShellAct.COMMENT, ShellAct.EXPAND_VARIABLE, ShellAct.EXPAND_HOME]
    assert shell_acts("-c 'x; y' \"a > b\"") == []
    assert [each.what for each in shell_acts('"$X"')] == ["$"]
    assert shell_acts("'$X'") == []
