"""Missing evidence of a run, and its cause: the model's code or tipcflow."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tipcflow.check.evidence.found import evaluated, found_in, is_of_runner, of_leg, ranks_with
from tipcflow.check.evidence.length import short_logs
from tipcflow.check.evidence.predictors import contradiction, is_class_only, predictor_runs, unobserved
from tipcflow.check.evidence.reports import report_defect
from tipcflow.check.evidence.sampled import unmeasured
from tipcflow.check.select import leg_key, loss_names, passed, records
from tipcflow.config.suite import Prints
from tipcflow.domain import Evidence, EvidenceKey, Expectation, Facts, OutputFile, Source, Status, Step
from tipcflow.domain.keys import PredictionKey
from tipcflow.domain.numbers.units import size

# Fewer images may have the same scores by chance.
_SEVERAL = 3
# No file of weights and no exported model is smaller, bytes.
_SMALLEST = 16
_MODELS = (".pdparams", ".pdiparams", ".pdmodel", ".json", ".pth", ".pt", ".onnx")


@dataclass(frozen=True)
class Missing:
    """A missing piece of evidence.

    Attributes:
        what: what is missing, as text, without the step.
        status: `failed` if the model's code should have produced it, `infra_failure` if tipcflow lost it,
            `unconfirmed` if it is unknown whether what is printed was computed, `insufficient_data` if the job may
            have ended before it was measured.
    """

    piece: Expectation
    what: str
    status: Status = Status.FAILED


def missing_in(facts: Facts, pieces: Sequence[Expectation], prints: Prints) -> list[Missing]:
    """What is missing of the expected evidence of the steps and legs that passed, in the order of `pieces`.

    What did not pass has its own reason. A log that was not read to its end proves nothing either way: what is
    missing of its step is an `infra_failure`.
    """
    steps = {step.id: step for step in facts.plan.steps}
    evidence = found_in(facts, prints)
    missing = []
    for piece in pieces:
        step = steps[piece.step]
        if not passed(facts, piece.step, "") or not passed(facts, piece.step, piece.leg):
            continue
        if piece.kind is Evidence.METRIC and is_of_runner(piece.metric):
            if lost := unmeasured(facts, step, piece, evidence):
                missing.append(Missing(piece, lost[1], lost[0]))
            continue
        logged = piece.kind is not Evidence.FILES
        gaps = list(_missing(facts, step, piece, prints, evidence))
        if piece.kind is Evidence.REPORT and not gaps and (doubt := unobserved(facts, step, piece.leg)):
            missing.append(Missing(piece, doubt[1], doubt[0]))
        for what in gaps:
            cut = facts.cut.get(piece.step, ()) if logged else ()
            status = Status.INFRA_FAILURE if cut else Status.FAILED
            missing.append(Missing(piece, f"{what} ({'; '.join(cut)})" if cut else what, status))
    return missing


def _missing(
    facts: Facts, step: Step, piece: Expectation, prints: Prints, evidence: frozenset[EvidenceKey]
) -> Iterable[str]:
    if piece.kind in (Evidence.ITERATIONS, Evidence.LOSS, Evidence.RANK):
        return _of_rank(facts, step, piece, prints)
    if piece.kind is Evidence.LENGTH:
        return [f"{_rank(step, log.rank, log.node)} {log.why}" for log in short_logs(facts, step, piece)]
    if piece.kind is Evidence.EVALUATION:
        return [] if evaluated(facts, step) else ["the evaluation printed no metric"]
    if piece.kind is Evidence.FILES:
        return _of_files(facts, step)
    if piece.kind is Evidence.PROOF:
        return []  # the check itself reports it (`require_proofs`)
    if piece.leg and piece.kind is not Evidence.METRIC:
        return _of_leg(facts, step, piece, prints)
    what = piece.metric or "predictions"
    return (
        []
        if piece.key.without_repeat() in evidence
        else [f"{what} is missing or not a finite number; {piece.because}"]
    )


def _of_rank(facts: Facts, step: Step, piece: Expectation, prints: Prints) -> Iterator[str]:
    have = ranks_with(facts, step, prints)
    logging = {rank for kind, rank in have if kind is piece.kind}
    if piece.rank in logging:
        return
    if piece.kind is Evidence.LOSS:
        # A rank without iterations is named by them, and a training without any loss by loss.finite.
        if (Evidence.ITERATIONS, piece.rank) not in have or not loss_names(facts, step, prints.losses):
            return
    elif piece.source is Source.PEERS and not _peers_log(step, piece.rank, logging):
        return
    word = {Evidence.ITERATIONS: "iteration", Evidence.LOSS: "loss", Evidence.RANK: "rank line"}[piece.kind]
    others = f" (logged by {len(logging)} other ranks)" if logging else ""
    yield f"{_rank(step, piece.rank, piece.node)} logged no {word}{others}"


def _peers_log(step: Step, rank: int, logging: set[int]) -> bool:
    """Whether a rank must log, by which others do: rank 0 alone, the first rank of each node, or all."""
    per_node = max(1, step.world_size // len(step.nodes))
    if any(other % per_node for other in logging):
        return True
    return rank % per_node == 0 and bool(logging - {0})


def _rank(step: Step, rank: int, node: str) -> str:
    where = f" on node {node}" if node and len(step.nodes) > 1 else ""
    return f"rank {max(0, rank)}{where}"


def _of_files(facts: Facts, step: Step) -> Iterator[str]:
    for record in records(facts, step.id):
        for output in record.outputs:
            if output.exists and output.fresh and (why := file_damage(output)):
                yield f"{output.path} on node {record.node} {why}"


def file_damage(output: OutputFile) -> str:
    """Why a file that was written cannot be what it should be, as text; '' if the file is plausible."""
    if output.damage:
        return output.damage
    if output.size == 0:
        return "is empty"
    small = output.size < _SMALLEST and output.path.endswith(_MODELS)
    return f"has only {size(output.size)}" if small else ""


def _constant(scores: Mapping[PredictionKey, tuple[float, ...]]) -> bool:
    """Whether several images have the very same scores, to the last digit: untrained networks differ in some."""
    images = [scored for key, scored in scores.items() if not key.is_result]
    return len(images) >= _SEVERAL and len(set(images)) == 1 and not is_class_only(images[0])


def _of_leg(facts: Facts, step: Step, piece: Expectation, prints: Prints) -> Iterator[str]:
    have = of_leg(facts, step, piece.leg)
    if piece.kind is Evidence.REPORT:
        why = report_defect(facts, step, piece.leg)
        # An engine line is printed before the first image: it proves that a predictor was made, not that it ran.
        printed = have & {Evidence.AUTOLOG, Evidence.PREDICTIONS}
        if why or not (printed or (not prints.inference and predictor_runs(facts, step, piece.leg))):
            probe = "" if prints.inference else ", and the framework probe observed no run of a predictor"
            yield why or f"the log has no AutoLog report and no prediction{probe}"
        elif wrong := contradiction(facts, step, piece.leg):
            yield wrong
        return
    if piece.kind is Evidence.PREDICTIONS and _constant(facts.predictions.get(leg_key(step, piece.leg), {})):
        yield "all images have identical scores: output is independent of input"
    if piece.kind in have or not have:
        return
    others = [leg.id for leg in step.legs if leg.id != piece.leg and passed(facts, step.id, leg.id)]
    with_it = [leg for leg in others if piece.kind in of_leg(facts, step, leg)]
    if piece.source is Source.HISTORY or with_it:
        word = {
            Evidence.ENGINE: "engine line",
            Evidence.AUTOLOG: "complete AutoLog report",
            Evidence.PREDICTIONS: "prediction",
        }[piece.kind]
        because = piece.because if not with_it else f"{len(with_it)} other legs have one"
        yield f"the log has no {word}; {because}"
