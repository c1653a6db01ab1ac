"""A smaller network out of a trained one: pruned, or prepared for 8-bit values. Its training continues."""

import argparse

from mobilenet.arguments import refuse
from mobilenet.meter import Log
from mobilenet.model import MobileNetV3Small
from mobilenet.prototypes import CLASSES
from mobilenet.pruning import pruned
from mobilenet.quantizing import is_quantized, quantize


def compressed(model: MobileNetV3Small, args: argparse.Namespace, log: Log) -> MobileNetV3Small:
    """A new network; the given one is left as it is, because the ranks still share its parameters."""
    before, widths = _size(model), [block.expanded for block in model.blocks]
    if args.compress == "prune":
        made = pruned(model, CLASSES, args.prune_share)
        log(f"compression: {before} -> {_size(made)} parameters, {sum(widths)} -> {_channels(made)} channels")
        return made
    if is_quantized(model.state_dict()):
        refuse(f"--compress={args.compress}: the weights of --pretrained are already quantized")
    made = MobileNetV3Small(CLASSES, widths=widths)
    made.set_state_dict(model.state_dict())
    log("compression: weights and inputs of convolutions and matrix products are rounded to 8 bits")
    return quantize(made)


def _size(model: MobileNetV3Small) -> int:
    return sum(int(value.size) for value in model.parameters())


def _channels(model: MobileNetV3Small) -> int:
    return sum(block.expanded for block in model.blocks)
