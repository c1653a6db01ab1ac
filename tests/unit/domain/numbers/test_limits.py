from tipcflow.domain.numbers.limits import limit


def test_limits() -> None:
    shown = {
        5: "5 s",
        2.5: "2.5 s",
        599: "599 s",
        600: "10 min",
        1200: "20 min",
        86400: "1440 min",
        259200: "3 days",
    }
    assert {seconds: limit(seconds) for seconds in shown} == shown
