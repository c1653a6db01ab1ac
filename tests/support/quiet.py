"""The quiet suite: a real training of the toy's params file that prints nothing about its ranks and weights."""

import shutil
from pathlib import Path

from tests.support.certify import ROOT, Site

from devcluster.local_nodes.nodes import LocalNodes

QUIET = ROOT / "tests" / "support" / "quiet_suite"
TRAIN = "norm_train_gpus_0,1_autocast_null_nodes_2/train"
EXPORT = "norm_train_gpus_0,1_autocast_null_nodes_2/export"
EVAL = "norm_train_gpus_0,1_autocast_null_nodes_2/eval"


def quiet_site(folder: Path, nodes: LocalNodes) -> Site:
    """A user whose suite trains with the real Paddle of the nodes."""
    site = Site(folder, nodes)
    shutil.rmtree(site.suite / "paddle")
    shutil.copytree(QUIET, site.suite, dirs_exist_ok=True)
    configure_quiet(site)
    return site


def configure_quiet(site: Site, **settings: object) -> None:
    """Write the suite's configuration; as in Step6, accuracies are shares."""
    site.configure_suite(framework="paddlepaddle", deterministic=False, prints={"accuracy": "1"}, **settings)
