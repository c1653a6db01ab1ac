"""Suites: location of a model repository and how its params files are read."""

import contextlib
import posixpath
import re
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from tipcflow.config.base import AS_TEXT, ConfigModel
from tipcflow.config.formats import BUILT_IN, PredictionRule, definition, own_formats
from tipcflow.config.loader import load_yaml
from tipcflow.config.needs import Case, Needs, merged
from tipcflow.config.yaml_text.strict import read_yaml
from tipcflow.domain.errors import ConfigError, InvalidKeyError, did_you_mean
from tipcflow.domain.node import EnvName, Launch

_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
_NOT_SETTINGS = {"name", "folder", "git", "params", "data_recipe", "verified"}
# How git names SSH in URLs.
_SSH = ("ssh", "git+ssh", "ssh+git")
_GIT_HINT = "git on this machine adds the login, for example from ~/.netrc (docs/reference/configuration.md)"
_DATA_HINT = "download the data to the nodes and give path instead of url"
_PACKAGES_HINT = "set PIP_INDEX_URL in env of the node, or ~/.netrc of the node's account, which pip reads"


class Deterministic(ConfigModel):
    """Determinism of a suite's training.

    Attributes:
        devices: devices on which training is deterministic.
        environment: variables of every training process (`FLAGS_cudnn_deterministic: 1`).
        arguments: text appended to training commands.
    """

    devices: tuple[Literal["cpu", "gpu"], ...] = ("cpu", "gpu")
    environment: Annotated[dict[EnvName, str], AS_TEXT] = {}
    arguments: str = ""


class Prints(ConfigModel):
    """What a suite's logs must contain; a run without it fails.

    Attributes:
        loss: training lines have a loss.
        evaluation: evaluations print a metric.
        inference: legs print an AutoLog report or predictions; otherwise it is enough that the framework probe
            observed runs of a `paddle.inference` predictor.
        accuracy: unit of printed accuracies: `1` for fractions, `%` for percentages; '' uses the unit of the log
            format, or decides by the values. A declared unit replaces that of the format and is checked against
            the range.
        losses: additional metrics that are losses (`*` and `?` match).
        may_be_nan: metrics that may be nan or inf in a correct run, such as `grad_norm` under AMP (`*` and `?`
            match).
        may_be_missing: metrics, and checks that are proofs, that are not expected although all earlier runs had
            them (`*` and `?` match).
    """

    loss: bool = True
    evaluation: bool = True
    inference: bool = True
    accuracy: Literal["", "1", "%"] = ""
    losses: tuple[str, ...] = ()
    may_be_nan: tuple[str, ...] = ()
    may_be_missing: tuple[str, ...] = ()


class Verified(ConfigModel):
    """What was tried with a suite.

    Attributes:
        what: files and steps.
        where: commit of the suite, framework version, devices.
        result: `pass`; `failed`; `planned`: commands only; `not_run`: nothing, `why` has the reason.
        why: details.
    """

    what: str
    where: str = ""
    result: Literal["pass", "failed", "planned", "not_run"]
    why: str = ""


class Suite(Needs):
    """`configs/suites/<name>.yaml`.

    Attributes:
        folder: the suite on the controller, absolute or relative to the folder that holds `configs/`; may be part
            of a git checkout.
        git: URL that the controller clones, without a login (`refuse_login`).
        subfolder: the suite's root in the folder or the clone: commands run in it, and paths are relative to it.
        whole_repository: runs get the whole folder or clone instead of `subfolder` only, for scripts that use
            files outside of it (`../package/train.py`).
        dialects: how params files are read; the first dialect with a matching layout is used.
        params: globs of the params files that become chains, relative to the root.
        prepare: script that gets data and weights, relative to the root; '' for none.
        seed_argument: text with `{seed}` appended to training commands of a run with a seed; '' if training
            cannot be seeded.
        deterministic: whether equal seeds give bit-identical losses, and under which settings; otherwise losses
            are compared within the differences of earlier runs.
        log_format: training log format (docs/reference/formats.md): a built-in one, `auto`, or the name of a
            file in configs/formats, which `load_suite` replaces by its content.
        predictions: lines of inference logs that name the predicted class of an image.
        framework: distribution that the scripts import (`paddlepaddle`, `torch`), '' for none.
        prints: what logs must contain.
        budget_minutes: time limit of a run, instead of the policy's.
        environment: `node`: steps use the node's environment. `run`: each run has its own on top of it, so that
            what `prepare` installs ends with the run.
        probe: whether Python processes of steps load the framework probe; a cluster file can also switch it off.
        downloads: `direct`, or `cached`: files that `prepare` gets with `wget` are kept in the node's cache.
        cases: needs of some runs only.
        data_recipe: where data and weights come from, and how to provide them without a network.
        verified: what was tried, and with which result (`tipcflow suites`).
    """

    name: str = Field(pattern=_NAME)
    folder: str = ""
    git: str = ""
    subfolder: str = "."
    whole_repository: bool = False
    dialects: tuple[str, ...] = Field(min_length=1)
    params: tuple[str, ...] = ("test_tipc/configs/**/*.txt",)
    prepare: str = "test_tipc/prepare.sh"
    seed_argument: str = ""
    deterministic: bool | Deterministic = False
    log_format: str = "auto"
    predictions: tuple[PredictionRule, ...] = ()
    framework: Literal["paddlepaddle", "torch", ""] = "paddlepaddle"
    prints: Prints = Prints()
    budget_minutes: float | None = Field(default=None, gt=0)
    environment: Literal["node", "run"] = "node"
    downloads: Literal["direct", "cached"] = "direct"
    probe: bool = True
    cases: tuple[Case, ...] = ()
    data_recipe: str = ""
    verified: tuple[Verified, ...] = ()

    def needs(self, *, framework: str = "", device: str, mode: str, params: str) -> Needs:
        """What a run needs on its nodes.

        Args:
            framework: version of the nodes' framework; '' if unknown.
            params: the params file, relative to the root.
        """
        own = Needs(**{name: getattr(self, name) for name in Needs.model_fields})
        return merged(own, self.cases, framework=framework, device=device, mode=mode, params=params)

    def settings(self) -> dict[str, Any]:
        """What the file sets and can change a run, as types of JSON: keys that differ from their defaults.

        Without where the suite is, whose content each run records, and what only documents the suite.
        """
        return self.model_dump(mode="json", exclude_defaults=True, exclude=_NOT_SETTINGS)

    @property
    def below(self) -> str:
        """The suite's root in the files that a run gets; '' if these are only the root's own files."""
        return self.subfolder if self.whole_repository else ""

    @property
    def top(self) -> str:
        """The folder of the files that a run gets, relative to the suite's root: `.` or for example `..`."""
        return posixpath.relpath(".", self.below or ".")

    def deterministic_on(self, device: str) -> Deterministic | None:
        """The settings for deterministic training on a device type; None if not deterministic."""
        made = Deterministic() if self.deterministic is True else self.deterministic
        return made if made and device in made.devices else None

    @field_validator("subfolder")
    @classmethod
    def _below(cls, path: str) -> str:
        clean = PurePosixPath(path)
        if clean.is_absolute() or ".." in clean.parts:
            raise ValueError("subfolder must be a path inside of the folder or clone, without '..'")
        return str(clean)

    @field_validator("seed_argument")
    @classmethod
    def _with_seed(cls, text: str) -> str:
        if text and "{seed}" not in text:
            raise InvalidKeyError("must contain {seed}", found=text, expected="text such as --seed={seed}")
        return text

    @model_validator(mode="after")
    def _one_source(self) -> "Suite":
        if bool(self.folder) == bool(self.git):
            raise ValueError("give either folder or git")
        for needs in (self, *self.cases):
            for folder in needs.pythonpath:
                if posixpath.normpath(posixpath.join(self.below, folder)).startswith(".."):
                    around = "the repository" if self.whole_repository else "the suite's root"
                    raise ValueError(f"pythonpath {folder} is outside of {around}, which is all that a run gets")
        if self.whole_repository and self.subfolder == ".":
            raise ValueError("whole_repository needs subfolder, the suite's root in the folder or clone")
        if self.seed_argument and Launch.SCRIPT in [needs.launch for needs in (self, *self.cases)]:
            raise ValueError("launch: script passes script_arguments only, without seed_argument")
        return self


def suite_name(name: str, config_dir: Path) -> str:
    """Return the name of the suite that a request means, before its file was validated.

    Args:
        name: a name, or the path of a suite file.

    Returns:
        The key `name` of the file if it can be read, else the given name or the stem of the path, with `_` for
        characters that the name of a suite cannot contain.
    """
    with contextlib.suppress(ConfigError, OSError, UnicodeDecodeError):
        path = find_config(name, config_dir / "suites", what="suite")
        data, _ = read_yaml(path.read_text(encoding="utf-8"), file=str(path))
        own = data.get("name") if isinstance(data, dict) else None
        if isinstance(own, str) and re.fullmatch(_NAME, own):
            return own
    stem = Path(name).stem if name.endswith((".yaml", ".yml")) else name
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", stem).lstrip("_.-") or "suite"


def load_suite(name: str, config_dir: Path) -> Suite:
    """The suite of that name (or of that YAML file), with `folder` made absolute.

    Raises:
        ConfigError: no such suite (the known ones are listed), its file is wrong, also by the name or by
            `log_format`, or a URL in it contains a login.
    """
    path = find_config(name, config_dir / "suites", what="suite")
    suite = load_yaml(path, Suite)
    _refuse_logins(suite, path)
    if path.resolve().parent == (config_dir / "suites").resolve() and suite.name != path.stem:
        file, line = place_in_suite(str(path), config_dir, "name")
        raise ConfigError(
            "is not the name of the file", file=file, line=line, key="name", found=suite.name, expected=path.stem
        )
    own = definition(suite.log_format, config_dir)
    if own:
        suite = suite.model_copy(update={"log_format": own})
    elif suite.log_format not in BUILT_IN:
        file, line = place_in_suite(str(path), config_dir, "log_format")
        known = (*BUILT_IN, *own_formats(config_dir))
        raise ConfigError(
            "is not a format of training logs",
            file=file,
            line=line,
            key="log_format",
            found=suite.log_format,
            expected=f"one of {', '.join(known)}, or a format of your own in configs/formats/",
            hint=did_you_mean(suite.log_format, known),
        )
    if suite.folder:
        base = path.resolve().parent.parent.parent
        suite = suite.model_copy(update={"folder": str((base / suite.folder).resolve())})
    return suite


def place_in_suite(name: str, config_dir: Path, *key: str | int) -> tuple[str, int]:
    """Return file and line of a key of a suite file, for errors that later steps find.

    A key that the suite file has only in `cases` is found there.

    Args:
        name: the suite's name, or the path of its file.

    Returns:
        The line is 0 for a key that the file does not have, or if the file cannot be read.
    """
    try:
        path = find_config(name, config_dir / "suites", what="suite")
        lines = read_yaml(path.read_text(encoding="utf-8"), file=str(path))[1]
    except (ConfigError, OSError, UnicodeDecodeError):
        return f"suites/{name}.yaml", 0
    ends = (line for place, line in lines.items() if place[:1] == ("cases",) and place[2:] == key)
    return str(path), lines.get(key) or next(ends, 0)


def _refuse_logins(suite: Suite, file: Path) -> None:
    """Check the URLs of a suite file: the repository, data and packages."""
    refuse_login(suite.git, "git", file=file)
    places: list[tuple[tuple[str | int, ...], Needs]] = [((), suite)]
    for start, needs in places + [(("cases", number), case) for number, case in enumerate(suite.cases)]:
        for number, data in enumerate(needs.data):
            refuse_login(data.url, *start, "data", number, "url", file=file, hint=_DATA_HINT)
        for number, package in enumerate(needs.packages):
            refuse_login(package, *start, "packages", number, file=file, hint=_PACKAGES_HINT)


def refuse_login(url: str, *key: str | int, file: Path | None = None, hint: str = _GIT_HINT) -> None:
    """Check that a URL contains no login: runs store the suite, and commands print the URL.

    `Suite` itself accepts a login, because runs of earlier versions have stored one. A user name alone is not
    secret in `git@host:path` and `ssh://git@host/path`; before an https host, the name may be a token.

    Args:
        key: path of the key in the file.
        file: the suite file with the URL; None for a command-line argument.
        hint: where the login may be instead.

    Raises:
        ConfigError: the URL contains a login, which the message omits.
    """
    start, is_url, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    login, at, host = authority.rpartition("@")
    # The URL of a package follows its name: `name @ git+ssh://git@host/path`.
    scheme = start.lower().split()[-1] if start.strip() else ""
    if not at or (scheme in _SSH and ":" not in login):
        return
    raise ConfigError(
        "the URL contains a login, which each run would store",
        file=str(file or ""),
        line=read_yaml(file.read_text(encoding="utf-8"), file=str(file))[1][key] if file else 0,
        key=".".join(str(part) for part in key),
        found=f"{start}{is_url}***@{host}{slash}{path}",
        expected="a URL without a login",
        hint=hint,
    )


def find_config(name: str, folder: Path, *, what: str) -> Path:
    """The YAML file that `name` means: a path to one, or a name in `folder`.

    Raises:
        ConfigError: there is none; the known names are listed.
    """
    if name.endswith((".yaml", ".yml")) and Path(name).is_file():
        return Path(name)
    path = folder / f"{name}.yaml"
    if "/" not in name and path.is_file():
        return path
    known = sorted(file.stem for file in folder.glob("*.yaml"))
    # The demo's cluster has this name, too, and runs print it in the command that repeats them.
    is_local = what == "cluster" and name == "local"
    raise ConfigError(
        f"unknown {what}",
        key=f"--{what}",
        found=name,
        expected=f"one of {', '.join(known)}" if known else f"a YAML file (there is none in {folder})",
        hint="`tipcflow local up` starts local nodes and writes it" if is_local else "",
    )
