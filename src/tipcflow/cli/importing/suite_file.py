"""The suite's YAML file: loaded if it exists, otherwise assumed from its files and written."""

import re
from collections import Counter
from pathlib import Path

from tipcflow.config.suite import Suite, load_suite
from tipcflow.domain import ConfigError
from tipcflow.domain.numbers.units import counted
from tipcflow.execute.resolve.suite_file import check_dialects
from tipcflow.params import load_dialect
from tipcflow.params.kinds import recognise
from tipcflow.params.lint.guess import guess_dialect

_PARAMS = "test_tipc/configs/**/*.txt"
# Logs in a suite's repository, and how much of them is read.
_LOGS = ("**/*.log", "**/workerlog.*")
_MOST_LOGS, MOST_BYTES = 50, 1 << 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def suite_for(name: str, repo: Path, config_dir: Path) -> tuple[Suite, str]:
    """The suite of that name, and a message about it.

    If it has no YAML file, dialects are assumed from the files of `repo`, most frequent first, and the file
    is written.

    Raises:
        ConfigError: the name or the file is invalid, or nothing can be assumed.
    """
    path = config_dir / "suites" / f"{name}.yaml"
    if name.endswith((".yaml", ".yml")) or path.exists():
        loaded = load_suite(name, config_dir)
        check_dialects(loaded, name, config_dir)
        return loaded, f"suite {loaded.name}: dialects {', '.join(loaded.dialects)}, from its file"
    if not _NAME.fullmatch(name):
        raise ConfigError(
            "cannot be a suite's name", key="--suite", found=name, expected="letters, digits, '_', '.' and '-'"
        )
    guessed = guess_dialects(repo)
    base = config_dir.resolve().parent
    root = repo.resolve()
    folder = root.relative_to(base).as_posix() if root.is_relative_to(base) else str(root)
    path.parent.mkdir(parents=True, exist_ok=True)
    measured = measured_format(repo)
    text = _yaml(name, folder, [dialect for dialect, _ in guessed], measured)
    path.write_text(text, encoding="utf-8")
    loaded = load_suite(name, config_dir)
    why = ", ".join(f"{dialect} ({why})" for dialect, why in guessed)
    return loaded, f"suite {name}: {path} written, dialects assumed: {why}; log_format auto: {measured}"


def logs_of(repo: Path) -> list[Path]:
    """Logs in a suite's repository, at most `_MOST_LOGS`."""
    return [path for pattern in _LOGS for path in sorted(repo.glob(pattern)) if path.is_file()][:_MOST_LOGS]


def measured_format(repo: Path) -> str:
    """A description of what `log_format: auto` recognizes in a suite's logs."""
    from tipcflow.parse.bulk.summary import summarize_log
    from tipcflow.parse.training.formats import FORMATS

    logs = logs_of(repo)
    kinds: Counter[str] = Counter()
    lines = 0
    for path in logs:
        with path.open("rb") as file:
            account = summarize_log([file.read(MOST_BYTES)])
        kinds.update(account.kinds)
        lines += account.lines - account.blank
    if not logs:
        return "the suite has no logs to test it on"
    known = ", ".join(f"{count} {form}" for form, count in kinds.most_common() if form in FORMATS)
    files = counted(len(logs), "log")
    return f"recognizes {known or 'none (define a custom format)'} of {lines} lines in {files} of the suite"


def guess_dialects(repo: Path) -> list[tuple[str, str]]:
    """Dialects of the training files below a folder, each with a reason, most frequent first.

    Of dialects with the same layout, only the most frequent is listed: a plan uses the first match.
    """
    counts: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    for path in sorted(repo.glob(_PARAMS)):
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        if recognise(text, str(path)).kind == "train":
            dialect, why = guess_dialect(text, str(path.resolve()))
            counts[dialect] += 1
            reasons.setdefault(dialect, why)
    if not counts:
        raise ConfigError(
            "the folder has no params files of training and inference, so its dialect is unknown",
            key="REPO",
            found=str(repo),
            expected=f"files such as {_PARAMS}",
            hint="if they are elsewhere, write the suite's YAML file first (docs/reference/configuration.md)",
        )
    by_layout: dict[str, str] = {}
    for dialect, _ in counts.most_common():
        by_layout.setdefault(load_dialect(dialect).layout, dialect)
    return [(dialect, reasons[dialect]) for dialect in by_layout.values()]


def other_suites(repo: Path) -> list[str]:
    """Folders in the suite's root with params files of their own, as relative paths."""
    inner = (path.parent.parent for path in sorted(repo.glob("*/**/test_tipc/configs")) if path.is_dir())
    return [path.relative_to(repo).as_posix() for path in inner]


def _yaml(name: str, folder: str, dialects: list[str], measured: str) -> str:
    import yaml

    keys = {"name": name, "folder": folder, "dialects": dialects, "params": [_PARAMS], "log_format": "auto"}
    head = (
        "# Written by `tipcflow import`; its dialects are assumed from paths and texts of its files.\n"
        "# Every key: docs/reference/configuration.md.\n"
    )
    return head + yaml.safe_dump(keys, sort_keys=False, default_flow_style=None) + f"# log_format: {measured}.\n"
