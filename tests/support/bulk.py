"""Logs to read in bulk, and what must come out: what reading line by line gives."""

import random
import re
import struct
from collections import Counter
from pathlib import Path

from tipcflow.domain import Phase
from tipcflow.parse import Sample, lines_of, parse_training
from tipcflow.parse.bulk.columns import Columns, batches
from tipcflow.parse.training.formats import line_formats
from tipcflow.parse.training.side import AuxiliaryLine

GOLDEN = Path(__file__).parents[1] / "golden" / "parse"
LINES = [
    line
    for name in ("suites.log", "train_models.log", "launch_failed.log", "autolog_plain.log", "infer_sample.log")
    for line in (GOLDEN / name).read_bytes().split(b"\n")
] + [
    b"",
    b"12",
    b"\x1b[31mcolor 12\x1b[0m",
    b"progress 1\rprogress 2\r[Epoch 1, iter: 2] loss: 3",
    b"[rank 3] [Epoch 1, iter: 2] loss: 3",
    b"==> log/workerlog.5 <==",
    b"[Epoch 1, iter: 2] loss: 3, top1: 0.5, top1: 0.7, x_1: 2, x_2: 3, y: 5., z: -0.0, v: .5, w: +1.5e-3",
    "[Epoch 1, iter: 2] Verlust\N{COMBINING DIAERESIS}: 3, loss: ٣".encode(),
    b"[Epoch 1, iter: 2] loss: 0.1234567890123456, top1: 12345678.87654321",
    b"{",
    b'    "ips": 1234.567,',
    b'    "model_name": "ResNet50_bs32", "device_num": "N1C8"',
    b"}",
    b'{"model_name": "r50", "ips": 12.5, "convergence_value": "6.91", "speed_unit": "samples/s"}',
    b"logs/2n8g/r50_b128_fp32_1.log {'1': 200.5, '2': 300.5}",
    b"I0322 06:15:51.123456  1234 autolog.h:60] ------ Config info ------",
    b"cpu_math_library_num_threads: 10",
]
EXACT = struct.Struct("<d")


def slowly(data: bytes, form: str) -> Counter[tuple[object, ...]]:
    return Counter(map(exactly, parse_training(lines_of(data), form)))


def exactly(one: Sample) -> tuple[object, ...]:
    value = "nan" if one.value != one.value else EXACT.pack(one.value)
    return (one.metric, one.phase, one.unit, one.epoch, one.iteration, one.rank, one.offset, value)


def quickly(data: bytes, form: str, piece: int) -> list[Sample]:
    columns = Columns(line_formats(form), AuxiliaryLine() if form == "auto" else None)
    found = []
    for batch in batches((data[at : at + piece] for at in range(0, len(data), piece)), columns):
        for (metric, phase, unit), column in batch.columns.items():
            rows = zip(column.values, column.epoch, column.iteration, column.offset, column.rank, strict=True)
            for value, epoch, iteration, offset, rank in rows:
                found.append(
                    Sample(metric, float(value), unit, phase, int(epoch), int(iteration), int(offset), int(rank))
                )
    return found


def same(data: bytes, form: str = "auto", piece: int = 1 << 19) -> None:
    quick = quickly(data, form, piece)
    assert Counter(map(exactly, quick)) == slowly(data, form)
    by_series: dict[tuple[str, Phase, str], list[int]] = {}
    for one in quick:
        by_series.setdefault((one.metric, one.phase, one.unit), []).append(one.offset)
    for offsets in by_series.values():
        assert offsets == sorted(offsets), "samples of a series come in the order of the log"


def redrawn(line: bytes, rng: random.Random) -> bytes:
    """The line with other digits, and other numbers of digits."""

    def run(found: re.Match[bytes]) -> bytes:
        width = rng.choice((len(found[0]), len(found[0]), rng.randint(1, 9), rng.randint(1, 20)))
        return "".join(rng.choices("0123456789", k=width)).encode()

    return re.sub(rb"\d+", run, line) if rng.random() < 0.9 else line


def interleaved(lines: int, ranks: int = 8) -> bytes:
    """Lines of several ranks, with noise between them."""
    rng = random.Random(1)
    made = []
    for number in range(lines):
        rank, step = number % ranks, number // ranks
        if number % 10 == 9:
            made.append(f"I1121 {rng.randrange(10**6)} tcp_utils.cc:181] nothing to see")
        else:
            made.append(
                f"[rank {rank}] [Epoch {step // 100}, iter: {step % 100}] loss: {rng.random() * 20:.5f}, lr: 0.1"
            )
    return ("\n".join(made) + "\n").encode()


def counted(data: bytes) -> tuple[int, Counter[str], Counter[int]]:
    lines, kinds, losses = 0, Counter[str](), Counter[int]()
    columns = Columns(line_formats("auto"), AuxiliaryLine())
    for batch in batches((data[at : at + (1 << 19)] for at in range(0, len(data), 1 << 19)), columns):
        lines += batch.lines
        kinds.update(batch.kinds)
        for (metric, _, _), column in batch.columns.items():
            if metric == "loss":
                losses.update(column.rank.tolist())
    return lines, kinds, losses
