"""Words and names that `tools/house.py` refuses."""

import ast
import importlib
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).parents[3] / "tools"


@pytest.fixture
def wording(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(TOOLS)
    return importlib.import_module("wording")


def test_words_that_are_never_written(wording: ModuleType) -> None:
    for line in ("it is no list", "for want of a GPU", "waited 3 s in vain", "stands at 7", "no confirmation run"):
        assert wording.NEVER.search(line), line
    for line in (
        "there is no list",
        "it is no longer listed",
        "`n` stands for the count",
        "a confirm run",
        "understands",
    ):
        assert not wording.NEVER.search(line), line


def test_phrases_over_a_line_break_are_found(wording: ModuleType) -> None:
    text = "# The node waited in\n# vain.\n\nThere is\nno run.\nThe step is no\n\nlist."
    assert list(wording._phrases(wording.NEVER, text)) == [(1, "in vain")]
    for script in (
        "// The node waited in\n// vain.",
        "/* The node waited in\n * vain. */",
        "-- waits in\n-- vain",
    ):
        assert list(wording._phrases(wording.NEVER, script)) == [(1, "in vain")], script


def test_scripts_styles_templates_and_dockerfiles_are_read_for_words(
    wording: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["docker/a.Dockerfile", "plugins/a.js", "plugins/a.css", "plugins/a.html", "src/a.mako", "Makefile"]
    for name in (*names, "plugins/tipcflow_pages/static/uplot/a.js"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("once" + " more\n")
    for argv in (["git", "init", "-q"], ["git", "add", "."]):
        subprocess.run(argv, check=True)
    assert [problem.partition(":")[0] for problem in wording.words(wording.WORDS)] == sorted(names)


@pytest.mark.parametrize(
    ("name", "phrases"),
    [
        ("a_rank_hangs_in_vain", ["in vain"]),
        ("it_covers_nothing", ["it"]),
        ("what_is_no_series", ["what", "is no s"]),
        ("a_step_waits_for_want_of_a_node", ["for want of"]),
        ("step_is_no_longer_listed", []),
        ("a_log_is_read_until_it_ends", ["it"]),
        ("a_run_names_what_it_needs", ["what", "it"]),
        ("limits_are_those_of_the_run", ["are those"]),
        ("a_leg_has_a_folder_of_its_own", ["of its own"]),
        ("an_expired_lease_keeps_its_node", []),
    ],
)
def test_names_of_tests_follow_the_word_lists(wording: ModuleType, name: str, phrases: list[str]) -> None:
    tree = ast.parse(f"def test_{name}():\n    pass\n\n\ndef {name}():\n    pass\n")
    expected = [f"t.py:1: {phrase!r} in test_{name} (glossary in CONTRIBUTING.md)" for phrase in phrases]
    assert list(wording.test_names(Path("t.py"), tree)) == expected


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("run", "has too few words"),
        ("the_runs_of_a_build", "has too few words"),
        ("runs_are_listed", ""),
        ("the_shape_of_a_green_run", "has no verb"),
        ("_".join(["runs"] * 12), ""),
        ("_".join(["runs"] * 13), "13 words"),
    ],
)
def test_names_of_tests_have_three_to_twelve_words(wording: ModuleType, name: str, problem: str) -> None:
    found = list(wording.test_names(Path("t.py"), ast.parse(f"def test_{name}():\n    pass\n")))
    assert [problem in one for one in found] == ([True] if problem else [])


def test_docstrings_and_comments_of_tests_have_their_own_word_list(wording: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "test_m.py"
    file.write_text(
        'def test_a():\n    """The node is told to stop."""\n    assert said == "no answer"  # the node says so\n'
    )
    assert [problem.partition(" ")[2] for problem in wording.prose(file)] == [
        "'is told' (glossary in CONTRIBUTING.md)",
        "'says so' (glossary in CONTRIBUTING.md)",
    ]


def test_vague_names_are_found_in_the_product_alone(wording: ModuleType) -> None:
    tree = ast.parse("def f(told, run):\n    return [one.id for one in run]\n\nfound = f(1, 2)\nprint(said)\n")
    places = list(wording.vague(Path("src/a/m.py"), tree))
    assert len(places) == 3, places
    assert all("name the object" in place for place in places)
    assert list(wording.vague(Path("tests/unit/a/test_m.py"), tree)) == []
    fields = ast.parse("class Finding:\n    found: str\n\ndef f(found):\n    pass\n")
    assert list(wording.vague(Path("src/a/m.py"), fields)) == [], "an error states what was found"
    assert list(wording.vague(Path("src/tipcflow/remote/runner/m.py"), tree)) == []
