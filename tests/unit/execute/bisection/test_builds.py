"""Lists of framework builds."""

from pathlib import Path

import pytest

from tipcflow.domain import ConfigError
from tipcflow.execute.bisection.builds import Build, read_builds

HASH = "ab" * 32
WHEEL = "https://builds.example.org/paddlepaddle-3.4.0.dev1122-cp311-cp311-linux_x86_64.whl"


def listed(path: Path, text: str) -> tuple[Build, ...]:
    (path / "builds.txt").write_text(text)
    return read_builds(path / "builds.txt")


def test_releases_and_wheels(tmp_path: Path) -> None:
    builds = listed(tmp_path, f"# nightly\n\npaddlepaddle==3.3.1  # released\n{WHEEL} --hash=sha256:{HASH}\n")
    assert builds == (
        Build("3.3.1", requirement="paddlepaddle==3.3.1"),
        Build(f"3.4.0.dev1122 (wheel {HASH[:12]})", wheel=WHEEL, sha256=HASH),
    )
    assert [str(build) for build in builds] == ["3.3.1", "3.4.0.dev1122 (wheel abababababab)"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a==1\n", "builds.txt: lists too few builds; found '1'"),
        ("a==1\na==1\n", "builds.txt:2: lists the same build twice; found '1'"),
        (
            "a==1\na>=2\n",
            "builds.txt:2: names no single version; found 'a>=2'; expected NAME==VERSION, or a wheel",
        ),
        ("a==1\na==2.*\n", "builds.txt:2: names no single version"),
        ("a = = 1\n", "builds.txt:1: is not a framework build; found 'a = = 1'"),
        (f"{WHEEL}\n", "builds.txt:1: is not a wheel with its hash"),
        (f"x.whl --hash=sha256:{HASH}\n", "builds.txt:1: is not the name of a wheel; found 'x.whl'"),
    ],
)
def test_bad_lists_are_one_error_with_the_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        listed(tmp_path, text)
    assert words in str(caught.value)


def test_missing_list_of_builds_is_an_error(tmp_path: Path) -> None:
    missing = tmp_path / "none.txt"
    with pytest.raises(ConfigError) as caught:
        read_builds(missing)
    assert str(caught.value) == (
        f"--builds: cannot be read: No such file or directory; found '{missing}'; "
        "expected a file with one build per line"
    )


def test_a_list_without_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--builds: is too long; found '/dev/zero'; expected at most 1000000"):
        read_builds(Path("/dev/zero"))
    with pytest.raises(ConfigError, match="--builds: is too long"):
        listed(tmp_path, "a==1\n" * 200_001)
