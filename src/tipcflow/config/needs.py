"""What a suite needs on the nodes beyond its own files: environment, packages, data, arguments, other values."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import Field, StringConstraints, field_validator, model_validator

from tipcflow.config.base import AS_TEXT, ConfigModel
from tipcflow.domain.errors import InvalidKeyError
from tipcflow.domain.node import EnvName, Launch
from tipcflow.domain.run.names import ModeName

ArgumentKind = Literal["train", "eval", "export", "infer"]
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")
# DLPerf's order; the names of its placeholders are those of `script_arguments`.
SCRIPT_ARGUMENTS = "{model} {batch} {precision} {nodes} {repeat}"
SCRIPT_VALUES = ("model", "batch", "precision", "node", "nodes", "repeat")
_Line = Annotated[str, StringConstraints(pattern=r"^[^\n\r\x00]*$")]


def _inside(path: str, what: str) -> str:
    parts = PurePosixPath(path).parts
    if not path or path.startswith("/") or ".." in parts or "\n" in path:
        raise ValueError(f"{what} must be a path inside of the suite's root, without '..'")
    return path


class Data(ConfigModel):
    """Data or weights that a run gets from the node's cache.

    Attributes:
        to: folder in the run's root that gets the content: the entries of an archive, or the file itself.
        url: source; the node's cache is filled with it once.
        path: source on the node or on a shared file system, instead of `url`: a folder, an archive or a file.
        sha256: hash of the file at `url` or `path`; required for `url`.
        unpack: whether the source is an archive to unpack; None: by its name (`.tar`, `.tgz`, `.zip` ...).
        link: `symlink` (the run reads the cache) or `copy` (for suites that write into their data).
    """

    to: str
    url: str = ""
    path: str = ""
    sha256: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    unpack: bool | None = None
    link: Literal["symlink", "copy"] = "symlink"

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        _inside(self.to, "to")
        if bool(self.url) == bool(self.path):
            raise ValueError("give either url or path")
        if self.url and not self.url.startswith(("http://", "https://", "file:///")):
            raise ValueError("url must start with http://, https:// or file:///")
        if self.url and not self.sha256:
            raise InvalidKeyError(
                "is required for a url: the cache is checked by it",
                "sha256",
                expected="64 hexadecimal digits, as printed by sha256sum",
            )
        if self.path and not self.path.startswith("/"):
            raise ValueError("path must be an absolute path on the node")
        return self

    @property
    def source(self) -> str:
        """The URL or the path."""
        return self.url or self.path

    @property
    def is_archive(self) -> bool:
        """Whether the source is unpacked."""
        return self.source.endswith(_ARCHIVES) if self.unpack is None else self.unpack


class Needs(ConfigModel):
    """Needs of a suite, or of some of its runs.

    Attributes:
        env: environment variables for all steps; they override the node's. `{root}` is the run's root.
        pythonpath: folders of the suite that its scripts import from, relative to the root; with
            `whole_repository` also folders around it (`..`).
        packages: pip requirements that the node's environment does not have. They are installed once into the
            node's cache, and only runs of this suite see them.
        data: data and weights.
        arguments: text appended to the commands of a kind of step. Not with compat bash.
        slots: values that replace those of the params file, by slot of the dialect.
        launch: how distributed trainings start; None as on the cluster.
        script_arguments: arguments of the script of `launch: script`, with the placeholders `{model}`, `{batch}`
            (per device), `{precision}`, `{nodes}` (addresses of all nodes, the first one runs rank 0), `{node}`
            (the node's own address) and `{repeat}` (1 for the first training).
    """

    env: Annotated[dict[EnvName, str], AS_TEXT] = {}
    pythonpath: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    data: tuple[Data, ...] = ()
    arguments: dict[ArgumentKind, _Line] = {}
    slots: dict[str, _Line] = {}
    launch: Launch | None = None
    script_arguments: _Line = SCRIPT_ARGUMENTS

    @field_validator("env")
    @classmethod
    def _not_ours(cls, env: dict[str, str]) -> dict[str, str]:
        for name in env:
            if name in ("PATH", "PYTHONPATH") or name.startswith("TIPCFLOW_"):
                hint = "use pythonpath" if name == "PYTHONPATH" else "set it for the node in the cluster file"
                raise ValueError(f"{name} cannot be set here: {hint}")
        return env

    @field_validator("pythonpath")
    @classmethod
    def _folders(cls, folders: tuple[str, ...]) -> tuple[str, ...]:
        for folder in folders:
            if not folder or folder.startswith("/") or ":" in folder or "\n" in folder:
                raise ValueError("an entry of pythonpath must be a path relative to the suite's root, without ':'")
        return folders

    @field_validator("script_arguments")
    @classmethod
    def _placeholders(cls, text: str) -> str:
        try:
            text.format(**dict.fromkeys(SCRIPT_VALUES, ""))
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            names = ", ".join(f"{{{name}}}" for name in SCRIPT_VALUES)
            raise ValueError(f"script_arguments has an unknown placeholder; known are {names}") from error
        return text

    @model_validator(mode="after")
    def _script_alone(self) -> Self:
        if self.launch is Launch.SCRIPT and self.arguments.get("train"):
            raise ValueError("launch: script passes script_arguments only, without arguments of train")
        return self

    @field_validator("packages")
    @classmethod
    def _requirements(cls, packages: tuple[str, ...]) -> tuple[str, ...]:
        for package in packages:
            try:
                Requirement(package)
            except InvalidRequirement as error:
                raise ValueError(f"{package!r} is not a pip requirement such as decorator==5.1.1") from error
        return packages


class Case(Needs):
    """Needs of the runs that meet all given conditions.

    Attributes:
        framework: versions of the node's framework (`>=3.0,<3.2`).
        device: device of the nodes.
        modes: modes of the run; `benchmark_train` matches all of its cases.
        params: globs of params files, relative to the suite's root.
    """

    framework: str = ""
    device: Literal["cpu", "gpu", ""] = ""
    modes: tuple[str, ...] = ()
    params: tuple[str, ...] = ()

    @field_validator("framework")
    @classmethod
    def _specifier(cls, text: str) -> str:
        try:
            SpecifierSet(text)
        except InvalidSpecifier as error:
            raise ValueError("not a range of versions such as >=3.0,<3.2") from error
        return text

    @model_validator(mode="after")
    def _conditional(self) -> Self:
        if not (self.framework or self.device or self.modes or self.params):
            raise ValueError("a case needs a condition: framework, device, modes or params")
        return self

    def holds(self, *, framework: str, device: str, mode: str, params: str) -> bool:
        """Whether the conditions hold. A condition on an unknown framework version ('') does not hold."""
        name = ModeName.parse(mode).mode
        return (
            (not self.framework or _in_range(framework, self.framework))
            and (not self.device or device == self.device)
            and (not self.modes or name in self.modes or mode in self.modes)
            and (not self.params or any(fnmatchcase(params, glob) for glob in self.params))
        )


def merged(base: Needs, cases: tuple[Case, ...], **conditions: str) -> Needs:
    """Return the needs with those of all cases that hold, in order; later values of a key replace earlier ones,
    lists and arguments are joined."""
    made = base
    for case in cases:
        if not case.holds(**conditions):
            continue
        made = Needs(
            env={**made.env, **case.env},
            pythonpath=tuple(dict.fromkeys([*made.pythonpath, *case.pythonpath])),
            packages=tuple(dict.fromkeys([*made.packages, *case.packages])),
            data=tuple(dict.fromkeys([*made.data, *case.data])),
            arguments=_joined(made.arguments, case.arguments),
            slots={**made.slots, **case.slots},
            launch=case.launch or made.launch,
            script_arguments=made.script_arguments
            if case.script_arguments == SCRIPT_ARGUMENTS
            else case.script_arguments,
        )
    return made


def _joined(first: Mapping[ArgumentKind, str], second: Mapping[ArgumentKind, str]) -> dict[ArgumentKind, str]:
    return {
        **first,
        **{kind: " ".join(filter(None, (first.get(kind, ""), text))) for kind, text in second.items()},
    }


def _in_range(version: str, text: str) -> bool:
    try:
        return bool(version) and SpecifierSet(text).contains(Version(version), prereleases=True)
    except InvalidVersion:
        return False
