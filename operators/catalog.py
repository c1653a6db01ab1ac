"""The chains of a suite, as far as their graphs need them: files of `configs/chains/<suite>/<model>/`."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tipcflow.config.suite import load_suite
from tipcflow.domain import Compat, TipcflowError, dag_id_of
from tipcflow.plan import build_plan

# Which mode a graph is drawn for; variants do not depend on it, but for modes that do not train.
GRAPH_MODE = "lite_train_lite_infer"


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
        return tuple(variant.id for variant in plan.variants)


def chains_of(suite: str, config_dir: Path) -> list[Chain]:
    """All chains of a suite, by name."""
    root = config_dir / "chains" / suite
    dialects = Dialects(suite, config_dir)
    return [Chain(path, dialects) for path in sorted(root.glob("*/*.txt"))]


def group_id(variant: str) -> str:
    """A variant's name as Airflow takes it for a task group."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", variant).strip("-")[:150] or "variant"
