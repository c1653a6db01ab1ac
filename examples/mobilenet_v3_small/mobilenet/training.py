"""The training loop and the evaluation."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import paddle
from paddle import nn
from paddle.nn import functional

from mobilenet.compression import compressed
from mobilenet.data import in_order, load, shard
from mobilenet.distributed import Place
from mobilenet.inject import before_step, loss_factor
from mobilenet.meter import Log, Meter, hits
from mobilenet.mixed import Precision
from mobilenet.model import MobileNetV3Small

EVAL_BATCH = 20
WARM_UP_STEPS = 4
Items = Sequence[tuple[Path, int]]


def _schedule(rate: float, steps: int) -> paddle.optimizer.lr.LRScheduler:
    """Up in a few steps, then down along a cosine to nearly nothing: the last steps settle the statistics."""
    cosine = paddle.optimizer.lr.CosineAnnealingDecay(
        rate, T_max=max(1, steps - WARM_UP_STEPS), eta_min=rate / 100
    )
    return paddle.optimizer.lr.LinearWarmup(cosine, WARM_UP_STEPS, start_lr=rate / 10, end_lr=rate)


class _Learner:
    """The network that the ranks share, and its optimizer."""

    def __init__(
        self, model: MobileNetV3Small, rate: paddle.optimizer.lr.LRScheduler, place: Place, precision: Precision
    ) -> None:
        optimizer = paddle.optimizer.AdamW(rate, parameters=model.parameters(), weight_decay=1e-4)
        self.model, self.optimizer = precision.decorate(model, optimizer)
        self.network = paddle.DataParallel(self.model) if place.world > 1 else self.model
        self.model.train()


def train(
    model: MobileNetV3Small, items: Items, args: argparse.Namespace, place: Place, precision: Precision, log: Log
) -> MobileNetV3Small:
    """Trains and returns the network: the given one, or with `args.compress` one made of it after half of the
    steps.

    Every rank prints its own lines; the loss printed is that of the rank's own images.
    """
    split = {"seed": args.seed, "rank": place.rank, "world": place.world, "batch": args.batch_size}
    epoch_steps = len(shard(len(items), epoch=0, **split))
    steps = args.max_iters or args.epochs * epoch_steps
    rate = _schedule(args.lr, steps)
    learner = _Learner(model, rate, place, precision)
    step = 0
    for epoch in range(1, -(-steps // epoch_steps) + 1):
        meter = Meter()
        for iteration, indices in enumerate(shard(len(items), epoch=epoch, **split)[: steps - step]):
            before_step(args.inject, step, place.rank)
            if args.compress != "none" and step == steps // 2:
                learner = _Learner(compressed(learner.model, args, log), rate, place, precision)
            pictures, labels = load([items[index] for index in indices])
            meter.read()
            with precision.forward():
                logits = learner.network(paddle.to_tensor(pictures))
            # The loss is computed in fp32, and so are the printed values.
            logits = logits.astype("float32")
            loss = functional.cross_entropy(logits, paddle.to_tensor(labels))
            loss = loss * loss_factor(args.inject, step, place.rank)
            precision.update(loss, learner.optimizer)
            meter.done(float(loss), logits.numpy(), labels)
            if (iteration + 1) % args.print_freq == 0 or iteration + 1 == epoch_steps or step + 1 == steps:
                log(meter.line(epoch, iteration, learner.optimizer.get_lr()))
                meter = Meter()
            rate.step()
            step += 1
    if precision.mixed:
        log(f"mixed precision: level {precision.level}, parameters trained: {precision.restore(learner.model)}")
    return learner.model


def evaluate(model: nn.Layer, items: Items, log: Log) -> None:
    """Prints accuracy in per cent, the mean loss, and how many classes were predicted."""
    model.eval()
    top1 = top5 = 0
    loss, classes = 0.0, set()
    with paddle.no_grad():
        for pictures, labels in in_order(items, EVAL_BATCH):
            logits = model(paddle.to_tensor(pictures))
            loss += float(functional.cross_entropy(logits, paddle.to_tensor(labels), reduction="sum"))
            scores = logits.numpy()
            top1 += hits(scores, labels, 1)
            top5 += hits(scores, labels, 5)
            classes |= set(scores.argmax(axis=1).tolist())
    model.train()
    count = len(items)
    log(f"evaluation: {count} images, loss {loss / count:.5f}, {len(classes)} classes predicted")
    log(f" * Acc@1 {100 * top1 / count:.3f} Acc@5 {100 * top5 / count:.3f}")
