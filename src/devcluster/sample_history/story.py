"""What happens in the year of the sample history: builds, commits, regressions, fixes, failures.

Weeks are counted from 0, the oldest, to 51; a shorter history is the end of this one.
"""

import hashlib
import random
from dataclasses import dataclass
from datetime import UTC, datetime

from devcluster.sample_history.chains import CHAINS, CPU, V100, SampleChain
from tipcflow.domain import Status

WEEKS = 52
WEEK_S = 7 * 86_400.0
# The week of the framework upgrade.
UPGRADE = 30
_DEGRADED_NODE, _DEGRADED_SINCE = "generated-v100-3", 40
_FLAKY = {"SAST": 0.3, "GPT2": 0.25, "FCOS": 0.22, "ShuffleNetV2": 0.18}
# Checks that runs of the history have.
SPEED_CHECK, ACCURACY_CHECK, FINITE_CHECK = "speed.baseline", "accuracy.baseline", "loss.finite"
TARGET_CHECK = "accuracy.final"
_NAN = "loss is nan from iteration 140 on in train"
_ITERATIONS = "batch_cost"


@dataclass(frozen=True)
class Problem:
    """A lasting problem of some chains.

    Attributes:
        first, end: the first week with it, and the first week without it; `accepted` means that its new value
            is the baseline from then on.
        factor: of the metric; 1 for a failure.
        check: the check that fails; '' for none.
        step: kind of the step that fails; '' for none.
    """

    models: tuple[str, ...]
    first: int
    end: int
    status: Status
    reason: str
    metric: str = _ITERATIONS
    factor: float = 1.0
    accepted: bool = False
    check: str = ""
    step: str = ""

    def concerns(self, chain: SampleChain, week: int) -> bool:
        """Whether a run of that week shows it."""
        return chain.model in self.models and self.first <= week < self.end

    def is_seen_on(self, cluster: str) -> bool:
        """Whether runs on that cluster can show it: failures everywhere, metrics on V100s."""
        return cluster == V100 or self.factor == 1


def _slower(models: str, first: int, end: int, percent: int, *, accepted: bool = False) -> Problem:
    reason = f"batch_cost of train is {percent} % above the baseline; limit: 5 %"
    return Problem(
        tuple(models.split()),
        first,
        end,
        Status.REGRESSION,
        reason,
        factor=1 + percent / 100,
        accepted=accepted,
        check=SPEED_CHECK,
    )


PROBLEMS = (
    Problem(
        ("SSD", "RetinaNet", "FCOS"), 12, 14, Status.FAILED,
        "train: exit code 1: AttributeError: 'Config' object has no attribute 'anchor_ratios'",
        step="train",
    ),
    Problem(
        ("ERNIE3_base",), 22, 27, Status.REGRESSION,
        "accuracy of eval is 0.031 below the baseline; limit: 0.008",
        metric="accuracy", factor=0.964, check=ACCURACY_CHECK,
    ),
    _slower("ResNeXt50 SE_ResNet50 DenseNet121 DenseNet201 InceptionV4 Xception41", UPGRADE, 34, 14),
    _slower("BERT_base RoBERTa", UPGRADE, 33, 9, accepted=True),
    _slower("MaskRCNN PSENet", 47, WEEKS, 7),
    Problem(
        ("SRN",), 48, WEEKS, Status.CONFIG_ERROR,
        "params file line 14: unknown key 'train_model_v2'; expected: train_model",
    ),
    _slower("ResNet18 ResNet50 ResNet101 ResNet152", WEEKS - 1, WEEKS, 11),
    Problem(
        ("PicoDet",), WEEKS - 1, WEEKS, Status.FAILED,
        "export: exit code 1: KeyError: 'export_post_process'",
        step="export",
    ),
    Problem(
        ("T5_small",), WEEKS - 1, WEEKS, Status.REGRESSION,
        "accuracy of eval is 0.024 below the baseline; limit: 0.008",
        metric="accuracy", factor=0.972, check=ACCURACY_CHECK,
    ),
)  # fmt: skip
# Faster with the new framework, once: the baseline follows.
FASTER = ("YOLOv3", "PPYOLO", "CRNN", "DB_res50", "ALBERT", "VGG16", "VGG19", "ViT_base")


@dataclass(frozen=True)
class Outcome:
    """How a run ends.

    Attributes:
        reason: why, without the name of the check.
        check: the check that decides; '' for none.
        failing_node: the node that failed; '' for none.
        step: kind of the step that did not succeed; '' if all did.
        factors: metric -> factor of its usual value.
    """

    status: Status
    reason: str
    factors: dict[str, float]
    check: str = ""
    failing_node: str = ""
    step: str = ""

    @property
    def line(self) -> str:
        """The reason of the run."""
        return f"{self.check}: {self.reason}" if self.check else self.reason


def framework_of(week: int, cluster: str, now: float) -> str:
    """Return the framework build of a week: a new one every week, except for every fourth week."""
    built = week - (week % 4 == 2)
    day = datetime.fromtimestamp(now - (WEEKS - built) * WEEK_S, UTC)
    release = "3.3.0" if built < UPGRADE else "3.4.0"
    name = "paddlepaddle" if cluster == CPU else "paddlepaddle-gpu"
    return f"{name} {release}.dev{day:%Y%m%d}"


def commit_of(suite: str, week: int) -> str:
    """Return the suite's commit in a week; it changes every two to four weeks."""
    every = 2 + len(suite) % 3
    models = {chain.model for chain in CHAINS if chain.suite == suite}
    failures = [problem for problem in PROBLEMS if problem.status is Status.FAILED]
    broken = [problem.first for problem in failures if models.intersection(problem.models)]
    part = week // every + sum(week >= first for first in broken) + 100 * (week >= UPGRADE)
    return hashlib.sha1(f"{suite} {part}".encode(), usedforsecurity=False).hexdigest()


def outcome_of(chain: SampleChain, cluster: str, week: int, nodes: tuple[str, ...], rng: random.Random) -> Outcome:
    """Return how a run ends: by the story, or by chance."""
    factors = _factors(chain, cluster, week)
    degraded = nodes[0] == _DEGRADED_NODE and week >= _DEGRADED_SINCE
    infra = (0.3 if week == WEEKS - 1 else 0.07) if degraded else 0.008
    if rng.random() < infra:
        return Outcome(
            Status.INFRA_FAILURE,
            f"train: node_lost (the node was lost or shut down); root cause: node {nodes[0]}",
            factors,
            failing_node=nodes[0],
            step="train",
        )
    if rng.random() < 0.002:
        return Outcome(Status.CANCELLED, "stopped by a user in train", factors, step="train")
    problem = next((each for each in PROBLEMS if each.concerns(chain, week)), None)
    if problem is not None and problem.is_seen_on(cluster):
        return Outcome(problem.status, problem.reason, factors, check=problem.check, step=problem.step)
    if rng.random() < _FLAKY.get(chain.model, 0.002):
        return Outcome(Status.FAILED, _NAN, factors, check=FINITE_CHECK)
    if week == UPGRADE and chain.model in FASTER:
        reason = "batch_cost of train is 8 % below the baseline"
        return Outcome(Status.IMPROVEMENT, reason, factors, check=SPEED_CHECK)
    return Outcome(Status.PASS, "", factors)


def _factors(chain: SampleChain, cluster: str, week: int) -> dict[str, float]:
    factors: dict[str, float] = {}
    for problem in PROBLEMS:
        if not problem.is_seen_on(cluster):
            continue
        lasts = problem.accepted and chain.model in problem.models and week >= problem.first
        if problem.concerns(chain, week) or lasts:
            factors[problem.metric] = problem.factor
    if chain.model in FASTER and week >= UPGRADE:
        factors[_ITERATIONS] = 0.92
    return factors
