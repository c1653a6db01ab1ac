"""Chains of a suite and their variants, read from `configs/chains/<suite>/<model>/`."""

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
from tipcflow.domain.run.names import ChainName, DagId
from tipcflow.params import load_dialect
from tipcflow.plan import ALL_MODES, build_plan, file_modes

# Mode for which a graph is built; only modes without training have other variants.
GRAPH_MODE = "lite_train_lite_infer"
# Suite, model, file.
# A task id starts with its group's id and has at most 250 characters.
_LONGEST_GROUP = 150
_LOG = logging.getLogger(__name__)


class Dialects:
    """Dialects of a suite's params files, read from the suite file once, on first use."""

    def __init__(self, suite: str, config_dir: Path) -> None:
        self.suite = suite
        self.config_dir = config_dir

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the suite's dialects.

        Raises:
            ConfigError: the suite file is missing or invalid, or a dialect of it does not exist or is invalid.
        """
        loaded = load_suite(self.suite, self.config_dir)
        try:
            for name in loaded.dialects:
                load_dialect(name)
        except ConfigError:
            from tipcflow.execute.resolve.suite_file import check_dialects

            check_dialects(loaded, self.suite, self.config_dir)  # the error with its place in the suite file
            raise
        return loaded.dialects

    @cached_property
    def problem(self) -> str:
        """Why no chain of the suite can run; '' if its file and its dialects are valid."""
        try:
            _ = self.names
        except ConfigError as error:
            return str(error)
        return ""


@dataclass(frozen=True)
class Chain:
    """A params file of the catalog.

    Attributes:
        path: the file; its folder is named after the model.
        dialects: dialects of the suite.
    """

    path: Path
    dialects: Dialects

    @property
    def suite(self) -> str:
        """Name of the suite."""
        return self.dialects.suite

    @property
    def name(self) -> str:
        """`<suite>/<model>/<file>`."""
        return str(ChainName(self.suite, self.path.parent.name, self.path.stem))

    @property
    def dag_id(self) -> str:
        """Id of the chain's DAG."""
        return dag_id_of(self.name)

    @property
    def params_file(self) -> str:
        """`<folder>/<name>`, by which the file is found in the suite."""
        return f"{self.path.parent.name}/{self.path.name}"

    @cached_property
    def modes(self) -> tuple[str, ...]:
        """Modes that this kind of file supports; all modes if the file is unreadable, which `resolve` reports."""
        try:
            text = self.path.read_text(encoding="utf-8")
            return file_modes(text, file=str(self.path), dialects=self.dialects.names)
        except (TipcflowError, OSError, UnicodeDecodeError):
            return ALL_MODES
        except Exception:
            _LOG.exception("cannot read the modes of %s", self.path)
            return ALL_MODES

    @cached_property
    def variants(self) -> tuple[str, ...]:
        """Ids of the variants; empty if the file cannot be planned, which `resolve` reports."""
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
            # A defect that one file triggers must not break the DAGs of all other files.
            _LOG.exception("cannot build the graph of %s", self.path)
            return ()
        return tuple(variant.id for variant in plan.variants)


def chains_of(suite: str, config_dir: Path) -> list[Chain]:
    """Return all chains of a suite, sorted by path.

    Raises:
        ConfigError: two chains have the same DAG ID; Airflow would show one of them without an error.
    """
    dialects = Dialects(suite, config_dir)
    chains = [Chain(Path(path), dialects) for path in sorted(_params_files(config_dir / "chains" / suite))]
    by_id: dict[str, Chain] = {}
    for chain in chains:
        other = by_id.setdefault(chain.dag_id, chain)
        if other is not chain:
            raise ConfigError(
                f"its DAG ID is also the DAG ID of {other.path}",
                file=str(chain.path),
                key="DAG ID",
                found=chain.dag_id,
                expected="folder and file names that differ in characters allowed in a DAG ID",
            )
    return chains


def chain_of(suite: str, config_dir: Path, dag_id: str) -> Chain | None:
    """Return the chain with this DAG ID; used in task processes, because it does not read all chains."""
    named = DagId.parse(dag_id)
    if named.is_of_chain:
        path = config_dir / "chains" / suite / named.model / f"{named.file}.txt"
        chain = Chain(path, Dialects(suite, config_dir))
        if chain.dag_id == dag_id and path.is_file():
            return chain
    # The file name has characters not allowed in an id, or the id is truncated.
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
    """Return a unique task group id for each variant.

    Source of the rule: Airflow's `validate_group_key` (letters, digits, `_` and `-`, at most 200 characters).
    """
    ids: list[str] = []
    for variant in variants:
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", variant).strip("-")[:_LONGEST_GROUP] or "variant"
        number = next(n for n in count(1) if (plain if n == 1 else f"{plain}-{n}") not in ids)
        ids.append(plain if number == 1 else f"{plain}-{number}")
    return ids
