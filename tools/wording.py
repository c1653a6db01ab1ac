"""Words and names that the style guide rules out (CONTRIBUTING.md); tools/house.py prints and bounds them."""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

PRODUCT = ("src/", "operators/", "plugins/", "dags/")
# Words of the glossary that are ruled out in code, comments and docs.
WORDS = re.compile(
    r"\b(desks?|mend(s|ed|ing)?|a person|somebody|(?<![\"`])nobody(?![\"`])|whoever|go(es)? on|once more|anew"
    r"|so many|so long|is to be had|cannot be had|gave up|give back|gives? way|wish(es)?|sick node|odd run|besides"
    r"|in doubt(?!\.)|culprits?|blam(e[sd]?|ing)|victims?|go(es)? well|ended well|once again)\b",
    re.IGNORECASE,
)
# Words that src/ and docs/ never contain; `there is no`, `is no longer` and `stands for` are usual English.
NEVER = re.compile(
    r"(?<!there )\bis no (?!longer\b)[a-z]|\b(for want of|in vain|confirmation runs?|stands(?! for\b)"
    r"|(tells|says) (so|why)"
    r"|(is|are|was) (said|told|asked)|said of|told (of|from)|asks? (for|a|the)|looked at|whole data|full data set"
    r"|(does|did) not answer|no answer within|as well(?! as\b)|ends? well)\b|^\s*(#|\"\"\"|- )\s*else\b",
    re.IGNORECASE,
)
NEVER_IN = ("src/", "docs/", "operators/", "plugins/", "dags/", "benchmarks/", "docker/", "README.md")
# Words that docstrings and comments never contain; names and strings may (stored fields, output of programs).
PROSE = re.compile(
    rf"{NEVER.pattern}|\b(sa(id|ys)|told|tells|ask(ed|s)|answer(ed|s)|look(s|ed)? at)\b", re.IGNORECASE
)
PROSE_IN = ("tests/",)
# Names of test functions, read as sentences, also never contain these: the subject of a test is named.
NAMES = re.compile(
    rf"{WORDS.pattern}|{NEVER.pattern}|^(how|why|when|where)\b|^(they|them|their|its?|what|who|whose|which|one|each|such|so)\b"
    r"|\b(for ever\b|are no (?!longer\b)[a-z])"
    # A pronoun or a clause in the place of a noun.
    r"|\b(it|itself|they|them|themselves|he|his|you|we|ours|theirs|there|what|whatever|who|whom|whoever)\b"
    r"|\b(of (its|their) own|(is|are) those|nothing else|anything else)\b|\b(which|those|that|is|are)$",
    re.IGNORECASE,
)
# A test's name has a subject and a verb in the present tense, often a condition.
MOST_NAME_WORDS = 12
LEAST_NAME_WORDS = 3  # without those in _SMALL
_SMALL = frozenset({"a", "an", "the", "of", "in"})
# A word in -s may be a plural noun, so that a name without any of these words certainly has no verb.
_VERB = re.compile(r"is|are|has|have|do|can|cannot|may|must|will|\w\w+(?<!s)s")
# Files whose words are not ours: logs of other programs, recorded runs, the glossary itself.
QUOTED = (
    "tests/golden/",
    "tests/support/toy_suite/",
    "tools/wording.py",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/adr/0028-word-list.md",
    "src/tipcflow/parse/suites/",
    "plugins/tipcflow_pages/static/uplot/",
)
# Files that are read for words.
TEXTS = (
    *("*.py", "*.md", "*.yaml", "*.yml", "*.toml", "*.sh", "*.html", "*.js", "*.css", "*.mako", "*.sql", "*.cfg"),
    *("*.in", "*Dockerfile*", "*Makefile", ".ci/run"),
)


# Indentation and the mark of a comment or quotation, dropped where a line is joined to the one before.
_MARGIN = re.compile(r"^\s*((#|>|//|--|\*(?!/)) ?)?\s*")
_BEFORE_DOCSTRING = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)

# Names that say nothing about the object, of variables, parameters, functions and classes; `_` at the start and
# capitals do not matter. What runs on nodes is left as it is.
VAGUE = frozenset(
    """
    one found told said culprit blame blamed victim odd sick accused heard mute parcel speak spoken strange stuff
    telling thing things whatever
    """.split()  # noqa: SIM905 (a list would have as many lines as names)
)


def tracked(*patterns: str) -> list[str]:
    """Files of the repository."""
    listed = subprocess.run(["git", "ls-files", "-z", *patterns], check=True, capture_output=True, text=True)
    return [name for name in listed.stdout.split("\0") if name and Path(name).is_file()]


def words(pattern: re.Pattern[str], below: tuple[str, ...] = ("",)) -> Iterator[str]:
    """Words in all files whose names begin with `below`."""
    for name in tracked(*TEXTS):
        if name.startswith(QUOTED) or not name.startswith(below):
            continue
        for number, phrase in _phrases(pattern, Path(name).read_text(encoding="utf-8")):
            yield f"{name}:{number}: {phrase!r} (glossary in CONTRIBUTING.md)"


def _phrases(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, str]]:
    """(Line, phrase) of every match, also of phrases over a line break."""
    lines = text.splitlines()
    for number, (line, following) in enumerate(zip(lines, [*lines[1:], ""], strict=True), 1):
        ending = line.rstrip()
        for match in pattern.finditer(f"{ending} {_MARGIN.sub('', following)}"):
            if match.start() < len(ending):
                yield number, match[0]


def vague(file: Path, tree: ast.Module) -> Iterator[str]:
    """Variables, parameters, functions and classes of the product with a vague name."""
    if not file.as_posix().startswith(PRODUCT) or "runner" in file.parts:
        return
    fields = {node.target for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)}
    for node in ast.walk(tree):
        # An error states what was found and what was expected.
        if (node in fields or isinstance(node, ast.arg)) and getattr(
            node, "id", getattr(node, "arg", "")
        ) == "found":
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = node.name
        else:
            name = node.arg if isinstance(node, ast.arg) else ""
        if name.strip("_").lower() in VAGUE:
            yield f"{file}:{node.lineno}: name {name!r}: name the object"


def test_names(file: Path, tree: ast.Module) -> Iterator[str]:
    """Names of test functions with words that are ruled out, or with too many or too few words."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            words = node.name.removeprefix("test_").split("_")
            if len(words) > MOST_NAME_WORDS:
                yield f"{file}:{node.lineno}: {len(words)} words in {node.name}, at most {MOST_NAME_WORDS}"
            if sum(word not in _SMALL for word in words) < LEAST_NAME_WORDS:
                yield f"{file}:{node.lineno}: {node.name} has too few words: name subject, verb and condition"
            elif not any(map(_VERB.fullmatch, words)):
                yield f"{file}:{node.lineno}: {node.name} has no verb: name subject, verb and condition"
            for match in NAMES.finditer(" ".join(words)):
                yield f"{file}:{node.lineno}: {match[0]!r} in {node.name} (glossary in CONTRIBUTING.md)"


def has_prose(file: Path) -> bool:
    """Whether `prose` and `test_names` apply to a file."""
    return file.as_posix().startswith(PROSE_IN) and not file.as_posix().startswith(QUOTED)


def prose(file: Path) -> Iterator[str]:
    """Words ruled out in docstrings and comments; a string that begins a line counts as a docstring."""
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(file.read_text(encoding="utf-8")).readline):
        is_docstring = token.type == tokenize.STRING and before in _BEFORE_DOCSTRING
        if token.type == tokenize.COMMENT or is_docstring:
            for number, phrase in _phrases(PROSE, token.string):
                yield f"{file}:{token.start[0] + number - 1}: {phrase!r} (glossary in CONTRIBUTING.md)"
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token.type
