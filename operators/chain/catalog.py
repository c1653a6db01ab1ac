"""The chains of a suite, as far as their graphs need them: files of `configs/chains/<suite>/<model>/`."""

import logging
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path

from tipcflow.config.suite import load_suite
from tipcflow.domain import Compat, ConfigError, TipcflowError, dag_id_of
from tipcflow.plan import ALL_MODES, build_plan, file_modes

# Which mode a graph is drawn for; variants do not depend on it, but for modes that do not train.
GRAPH_MODE = "lite_train_lite_infer"
# Suite, model, file.
_ID_PARTS = 3
# A task's id has its group's in front, and may have 250 characters.
_LONGEST_GROUP = 150
_LOG = logging.getLogger(__name__)


class Dialects:
    """How a suite's params files are read: its file is read when a graph is drawn, once for all chains."""

    def __init__(self, suite: str, config_dir: Path) -> None:
        self.suite = suite
        self.config_dir = config_dir

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of its dialects.

        Raises:
            ConfigError: the suite's file is missing or wrong.
        """
        return load_suite(self.suite, self.config_dir).dialects


@dataclass(frozen=True)
class Chain:
    """One params file of the catalog.

    Attributes:
        path: the file; its folder is the model.
        dialects: those of its suite.
    """

    path: Path
    dialects: Dialects

    @property
    def suite(self) -> str:
        """The name of its suite."""
        return self.dialects.suite

    @property
    def name(self) -> str:
        """`<suite>/<model>/<file>`."""
        return f"{self.suite}/{self.path.parent.name}/{self.path.stem}"

    @property
    def dag_id(self) -> str:
        """The id of its DAG."""
        return dag_id_of(self.name)

    @property
    def params_file(self) -> str:
        """What finds the file in the suite: its folder and name."""
        return f"{self.path.parent.name}/{self.path.name}"

    @cached_property
    def modes(self) -> tuple[str, ...]:
        """The modes that its kind of file may have; all, when that cannot be told: then `resolve` says why."""
        try:
            text = self.path.read_text(encoding="utf-8")
            return file_modes(text, file=str(self.path), dialects=self.dialects.names)
        except (TipcflowError, OSError, UnicodeDecodeError):
            return ALL_MODES
        except Exception:
            _LOG.exception("the modes of %s cannot be told", self.path)
            return ALL_MODES

    @cached_property
    def variants(self) -> tuple[str, ...]:
        """The ids of its variants; none when the file cannot be planned: then `resolve` says why."""
        try:
            plan = build_plan(
                self.path.read_text(encoding="utf-8"),
                file=str(self.path),
                suite=self.suite,
                chain=self.name,
                dialects=self.dialects.names,
                mode=GRAPH_MODE,
                compat=Compat.SPEC,
            )
        except (TipcflowError, OSError, UnicodeDecodeError):
            return ()
        except Exception:
            # A defect of ours that one file shows must not take the DAGs of all others along.
            _LOG.exception("%s cannot be drawn", self.path)
            return ()
        return tuple(variant.id for variant in plan.variants)


def chains_of(suite: str, config_dir: Path) -> list[Chain]:
    """All chains of a suite, by path.

    Raises:
        ConfigError: the DAGs of two of them would have the same id: Airflow would show one and be silent.
    """
    dialects = Dialects(suite, config_dir)
    chains = [Chain(Path(path), dialects) for path in sorted(_params_files(config_dir / "chains" / suite))]
    by_id: dict[str, Chain] = {}
    for chain in chains:
        other = by_id.setdefault(chain.dag_id, chain)
        if other is not chain:
            raise ConfigError(
                f"its DAG has the same id as that of {other.path}",
                file=str(chain.path),
                key="DAG id",
                found=chain.dag_id,
                expected="folders and files whose names differ in more than characters that no id may have",
            )
    return chains


def chain_of(suite: str, config_dir: Path, dag_id: str) -> Chain | None:
    """The chain whose DAG has this id. For the process of a task: it looks for one file and lists none."""
    parts = dag_id.split(".")
    if len(parts) == _ID_PARTS:
        path = config_dir / "chains" / suite / parts[1] / f"{parts[2]}.txt"
        chain = Chain(path, Dialects(suite, config_dir))
        if chain.dag_id == dag_id and path.is_file():
            return chain
    # Its file's name has characters that no id may have, or the id is cut.
    return next((chain for chain in chains_of(suite, config_dir) if chain.dag_id == dag_id), None)


def _params_files(root: Path) -> Iterator[str]:
    """`<root>/<model>/*.txt`."""
    if not root.is_dir():
        return
    with os.scandir(root) as models:
        folders = [model.path for model in models if model.is_dir()]
    for folder in folders:
        with os.scandir(folder) as files:
            yield from (file.path for file in files if file.name.endswith(".txt"))


def group_ids(variants: Sequence[str]) -> list[str]:
    """The variants' names as Airflow takes them for task groups: each differs from the others.

    Source of the rule: Airflow's `validate_group_key` (letters, digits, `_` and `-`, at most 200 characters).
    """
    ids: list[str] = []
    for variant in variants:
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", variant).strip("-")[:_LONGEST_GROUP] or "variant"
        number = next(n for n in count(1) if (plain if n == 1 else f"{plain}-{n}") not in ids)
        ids.append(plain if number == 1 else f"{plain}-{number}")
    return ids
