"""Every strange YAML file is one ConfigError with file and line; values that YAML 1.1 misreads are refused."""

from random import Random

import pytest

from tipcflow.config.loader import parse_yaml
from tipcflow.config.suite import Suite
from tipcflow.config.yaml_text import strict
from tipcflow.config.yaml_text.strict import MAX_DEPTH, MAX_VALUES, read_yaml
from tipcflow.domain import Cluster, ConfigError

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdef", "bcdefg", strict=True)
)


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        ("a: 1\nb: 2026-13-45", 2, "b", ["timestamp"]),
        ("a: !!int abc", 1, "a", ["'abc'"]),
        ("a: !!float x", 1, "a", ["'x'"]),
        ("a: !!timestamp x", 1, "a", ["timestamp"]),
        ("a: " + "9" * 5000, 1, "a", ["decimal number"]),
        ("a:\n  b: !foo c", 2, "a.b", ["tag", "!foo"]),
        ("a: !!python/object/apply:os.system ['true']", 1, "a", ["tag"]),
        ("a: !!binary aGk=", 1, "a", ["tag"]),
        ("a: !!set {x}", 1, "a", ["tag"]),
        ("b: 1\n<<: {a: b}", 2, "", ["merge keys"]),
        ("? [a]\n: b", 1, "", ["key"]),
        ("{[a]: b}", 1, "", ["key"]),
        ("a: &a [*a]", 1, "a.0", ["contains itself"]),
        ("a:\n  b: &b {c: *b}", 2, "a.b.c", ["contains itself"]),
        ("- " * 3000 + "x", 1, "", [str(MAX_DEPTH)]),
        ("[" * 3000, 1, "", [str(MAX_DEPTH)]),
        ("a: b\nc: \x07", 2, "", ["U+0007 (BELL)"]),
        ("a: \x00", 1, "", ["U+0000 (NUL)"]),
        ('folder: "\\0"', 1, "folder", ["U+0000 (NUL)"]),
        ('folder: "x\\e[31m"', 1, "folder", ["ESCAPE"]),
        ("folder: a\u200bb", 1, "folder", ["ZERO WIDTH SPACE"]),
        ("folder: a\u202eb", 1, "folder", ["RIGHT-TO-LEFT OVERRIDE"]),
        ("folder: a\u00a0b", 1, "folder", ["NO-BREAK SPACE"]),
        ("a: *nothing", 1, "", ["alias"]),
        ('a: "\\UFFFFFFFF"', 0, "", ["is not YAML"]),
        (BOMB, 0, "", [str(MAX_VALUES)]),
    ],
)
def test_invalid_yaml_is_a_single_error_with_its_line(text: str, line: int, key: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        read_yaml(text, file="lab.yaml")
    assert caught.value.file == "lab.yaml"
    assert caught.value.line == line if text != BOMB else caught.value.line > 0
    assert caught.value.key == key if text != BOMB else caught.value.key
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("word", "instead"),
    [
        ("yes", "true, or 'yes' in quotes"),
        ("on", "true, or 'on' in quotes"),
        ("No", "false, or 'No' in quotes"),
        ("OFF", "false, or 'OFF' in quotes"),
        ("022", "18, or '022' in quotes"),
        ("010", "8, or"),
        ("0x1F", "31, or"),
        ("0b11", "3, or"),
        ("1:30", "90, or"),
        ("1_000", "1000, or"),
        ("1:30.5", "decimal number"),
        ("1_0.5", "decimal number"),
    ],
)
def test_value_that_yaml_reads_differently_is_refused_with_the_value_to_write(word: str, instead: str) -> None:
    for text in (f"a: {word}", f"- {word}", f"{word}: 1"):
        with pytest.raises(ConfigError, match="does not read this value as written") as caught:
            read_yaml(text, file="f")
        assert instead in str(caught.value)
    assert read_yaml(f"a: '{word}'", file="f")[0] == {"a": word}


def test_ordinary_values_are_read() -> None:
    text = (
        "a: true\nb: False\nc: 10\nd: -0.5\ne: .inf\nf: text: not a key".replace("text: not", "'text: not") + "'\n"
    )
    text += "g: null\nh: ~\ni:\nj: &x [1, 2]\nk: *x\nl: 1e5\nm: =\nn: 0\no: 2.5e-3\np: |\n  two\n  lines\n"
    data, lines = read_yaml(text, file="f")
    assert (data["a"], data["b"], data["c"], data["d"], data["e"]) == (True, False, 10, -0.5, float("inf"))
    assert (data["g"], data["h"], data["i"], data["k"], data["l"], data["m"]) == (
        None,
        None,
        None,
        [1, 2],
        "1e5",
        "=",
    )
    assert (data["n"], data["o"], data["p"]) == (0, 0.0025, "two\nlines\n")
    assert lines[("k",)] == 11


@pytest.mark.slow
def test_alias_bomb_stops_at_the_bound() -> None:
    """Work is bounded by the number of values, not by the size that the aliases would expand to."""
    wide = "a: &a [" + ", ".join(["x"] * 1000) + "]\nb: [" + ", ".join(["*a"] * 1000) + "]\n"
    with pytest.raises(ConfigError, match="too many values"):
        read_yaml(wide, file="f")


NODE = "name: lab\nnodes:\n  - name: a\n    address: 10.0.0.1\n    python: /p\n    workspace: /w\n"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("    slots: 99999999999999999999\n", "nodes.0.slots"),
        ("    slots: 5000\n", "nodes.0.slots"),
        ("    ssh: {host: h, port: 99999}\n", "nodes.0.ssh.port"),
        ("    ssh: {host: h, port: -1}\n", "nodes.0.ssh.port"),
        ("    env: {A B: x}\n", "nodes.0.env"),
        ("    env: {A=B: x}\n", "nodes.0.env"),
        ("    env: {'': x}\n", "nodes.0.env"),
        ('    cpus: "; rm -rf /"\n', "nodes.0.cpus"),
    ],
)
def test_impossible_values_of_a_node_are_refused(text: str, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(NODE + text, Cluster, file="lab.yaml")
    assert caught.value.key.startswith(key)
    assert caught.value.line == 7


def test_possible_values_of_a_node_are_accepted() -> None:
    text = NODE + "    slots: 8\n    ssh: {host: h, port: 2222}\n    cpus: 0-3,8\n    env: {FLAGS_x.y: 1, a: b}\n"
    with pytest.raises(ConfigError, match="FLAGS_x"):
        parse_yaml(text, Cluster, file="lab.yaml")
    node = parse_yaml(text.replace("FLAGS_x.y: 1", "FLAGS_x: '1'"), Cluster, file="lab.yaml").nodes[0]
    assert (node.slots, node.cpus, node.env) == (8, "0-3,8", {"FLAGS_x": "1", "a": "b"})


def test_suite_environment_names_are_checked() -> None:
    text = "name: toy\nfolder: /toy\ndialects: [models/template]\ndeterministic: {environment: {A B: '1'}}\n"
    with pytest.raises(ConfigError, match="environment"):
        parse_yaml(text, Suite, file="toy.yaml")


def test_a_number_without_digits_is_refused() -> None:
    for text in ('a: !!int ""', "a: !!int _"):
        with pytest.raises(ConfigError, match="f:1: a: YAML does not read this value as written") as caught:
            read_yaml(text, file="f")
        assert "expected a decimal number" in str(caught.value)


PARTS = (
    "a",
    "b: ",
    "- ",
    ": ",
    "\n",
    "\n  ",
    "\n    ",
    "[",
    "]",
    "{",
    "}",
    ",",
    ", ",
    "&x ",
    "*x",
    "!!str ",
    "!",
    "|\n",
    "|-\n  ",
    ">",
)
PARTS += (
    "'",
    "''",
    '"',
    "\\n",
    "\\",
    "#",
    " # c",
    "?",
    "? ",
    "%",
    "---\n",
    "...\n",
    "0",
    "1.5",
    "~",
    "null",
    "<<: ",
    "@",
    "`",
    "yes",
    " ",
)
PARTS += ("key: value\n", "x: {y: 1}\n", "list:\n- 1\n- 2\n", "a:b", "http://x:1", "\t", "é", "5 %")


def test_libyaml_reads_as_the_loader_in_python_does(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(1)
    texts = ["".join(random.choices(PARTS, k=random.randint(1, 14))) for _ in range(1500)]
    # What the two read differently, so that the loader in Python has to read it.
    texts += ["!", "b: !", ">#", "---\n #", "{ =? ...\n, }", "%YAML 1.1\na: b", "a: b\n%"]

    def results() -> list[str]:
        found = []
        for text in texts:
            try:
                found.append(repr(read_yaml(text, file="lab.yaml")))
            except ConfigError as error:
                found.append(str(error))
        return found

    quick = results()
    monkeypatch.setattr(strict, "_C_LOADER", None)
    assert results() == quick
