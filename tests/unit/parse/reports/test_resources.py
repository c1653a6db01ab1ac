"""Memory by rank: from exit records and from the runner's samples."""

from tipcflow.domain import EndReason, ExitRecord
from tipcflow.parse import lines_of, metric, parse_resources, peak_measurements


def test_peaks_by_rank_and_in_all() -> None:
    record = ExitRecord(
        run="r",
        step="train",
        node="a",
        attempt=2,
        reason=EndReason.EXITED,
        exit_code=0,
        peak_rss_bytes={"0": 5, "1": 6, "": 100, "total": 111, "odd": 1},
        peak_gpu_bytes={"0": 7},
    )
    made = peak_measurements(record)
    assert [(one.metric, one.rank, one.value, one.unit) for one in made] == [
        ("peak_rss", 0, 5.0, "bytes"),
        ("peak_rss", 1, 6.0, "bytes"),
        ("peak_rss", -1, 111.0, "bytes"),
        ("peak_gpu", 0, 7.0, "bytes"),
    ]
    assert {one.attempt for one in made} == {2}


def test_gpu_memory_can_belong_to_no_rank() -> None:
    """Inference and trainings without a launcher: no sum is kept of GPU memory, and there is only one."""
    known = {"run": "r", "step": "infer", "leg": "l", "node": "a", "reason": EndReason.EXITED, "exit_code": 0}
    alone = ExitRecord(**known, peak_rss_bytes={"": 5, "total": 6}, peak_gpu_bytes={"": 9})
    assert [(one.metric, one.rank, one.value) for one in peak_measurements(alone)] == [
        ("peak_rss", -1, 6.0),
        ("peak_gpu", -1, 9.0),
    ]
    beside = ExitRecord(**known, peak_gpu_bytes={"": 9, "1": 7})
    assert [(one.rank, one.value) for one in peak_measurements(beside)] == [(1, 7.0)]


def test_samples_of_the_runner_are_parsed() -> None:
    text = (
        '{"t": 12.5, "leg": "", "rss": {"0": 100, "": 20}, "total": 120, "cpu_s": 1.5, "procs": 3}\n'
        '{"t": "soon"}\n[1, 2]\n7\n'
        '{"t": 13.0, "leg": "a", "rss": {"": 20}, "total": 20, "cpu_s": 2, "procs": 1, "gpu": {"0": 9}}\n'
        '{"t": 14.0, "le'
    )
    first, second = parse_resources(lines_of(text))
    assert (first.at, first.rss, first.total, first.gpu, first.processes) == (12.5, {0: 100, -1: 20}, 120, {}, 3)
    assert (second.leg, second.gpu, second.cpu_s) == ("a", {0: 9}, 2.0)
    assert text.encode()[second.offset :].startswith(b'{"t": 13.0')


def test_metrics_have_unit_direction_and_family() -> None:
    assert (metric("ips").unit, metric("ips").better, metric("ips").family) == ("samples/s", "higher", "speed")
    assert (metric("CELoss").better, metric("CELoss").family) == ("lower", "quality"), "a loss by its name"
    assert (metric("loss_scale").unit, metric("loss_scale").better) == ("", "none")
