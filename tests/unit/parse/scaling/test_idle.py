"""Which ranks of a training idle."""

from tipcflow.parse.scaling.idle import Load, idle_ranks


def a_load(rank: int, cpu_s: float, *, seconds: float = 20.0, step: str = "train") -> Load:
    return Load(step, "ab"[rank // 2], rank, seconds, cpu_s)


def test_rank_with_little_cpu_time_is_named() -> None:
    loads = [a_load(0, 19.0), a_load(1, 20.0), a_load(2, 19.5), a_load(3, 1.0)]
    assert idle_ranks(loads) == ["train: rank 3 on b idles: it used 5 % of a CPU core, the other ranks 98 %"]


def test_ranks_that_share_the_work_are_plausible() -> None:
    assert idle_ranks([a_load(0, 19.0), a_load(1, 8.0), a_load(2, 30.0), a_load(3, 20.0)]) == []


def test_single_rank_and_short_observation_are_not_evaluated() -> None:
    assert idle_ranks([a_load(0, 0.1)]) == []
    assert idle_ranks([a_load(0, 5.0, seconds=6.0), a_load(1, 0.1, seconds=6.0)]) == []


def test_ranks_that_all_wait_for_a_device_are_not_compared() -> None:
    assert idle_ranks([a_load(0, 2.0), a_load(1, 2.0), a_load(2, 0.1)]) == []


def test_rank_is_named_once_for_all_repeats() -> None:
    loads = [a_load(rank, 1.0 if rank else 20.0, step=step) for step in ("one", "two") for rank in (0, 1)]
    (note,) = idle_ranks(loads)
    assert note.startswith("one: rank 1 on a idles")
