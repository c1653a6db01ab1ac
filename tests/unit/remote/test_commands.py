"""The text of remote commands: as it always was (golden), and harmless whatever the names are (executed)."""

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from tests.support.no_privilege import WITHOUT_PRIVILEGE

from tipcflow.domain import Node, StoppedBy
from tipcflow.remote import commands, fetching, paths
from tipcflow.remote.fetching import Listed

pytestmark = pytest.mark.process

GOLDEN = Path(__file__).parents[2] / "golden" / "remote"
NODE = Node(name="a", address="10.0.0.1", python="/opt/env/bin/python", workspace="/data/tipcflow")
JOB = "/data/tipcflow/jobs/r1/train%2Fnorm_train/1"
EVERY = {
    "make_workspace": commands.make_workspace(NODE),
    "check_python": commands.check_python(NODE),
    "has_file": commands.has_file("/data/it's here"),
    "has_file_of": commands.has_file("/data/it's here", "0" * 64),
    "write_file": commands.write_file("/data/it's here", mode=0o600),
    "read_file": commands.read_file("/data/file"),
    "read_file_part": commands.read_file("/data/file", offset=10, limit=5),
    "pack_files": fetching.pack_files("/data/root", ["a b", "c"], limit=100),
    "hash_beginning": fetching.hash_beginning("/data/it's here", 7),
    "unpack": commands.unpack(NODE, "r1", "0" * 64),
    "inherit": commands.inherit(NODE, "r2", "r1", "0" * 64, needs=["out/*.pdparams"], without=["eval.log"]),
    "make_shims": commands.make_shims(NODE, "r1", ["python", "pip"]),
    "remove_run": commands.remove_run(NODE, "r1"),
}
RUNNER = {
    "start": lambda: commands.start(NODE, JOB),
    "begin": lambda: commands.begin(NODE, JOB, seconds=15, resume={"": 7}),
    "poll": lambda: commands.poll(NODE, JOB),
    "go": lambda: commands.go(NODE, JOB),
    "stop": lambda: commands.stop(NODE, JOB, "node b: it's gone", StoppedBy.PEER),
    "watch": lambda: commands.watch(NODE, JOB, seconds=60, resume={"": 7, "leg": 8}),
    "report_peers": lambda: commands.report_peers(NODE, JOB, active=True),
    "evidence": lambda: commands.evidence(NODE, JOB),
    "list_ours": lambda: commands.list_ours(NODE),
    "reap": lambda: commands.reap(NODE),
    "reap_job": lambda: commands.reap(NODE, job="r1/train/norm_train/1"),
    "reap_helpers": lambda: commands.reap(NODE, helpers=True),
    "reap_operator": lambda: commands.reap(NODE, by=StoppedBy.OPERATOR),
    "reap_living": lambda: commands.reap(NODE, living=True),
    "facts": lambda: commands.facts(NODE, {"b": "10.0.0.2", "c": "10.0.0.3:2222"}, port=22),
}
HOSTILE = [
    "plain",
    "two words",
    "it's",
    'say "hi"',
    "$(touch injected)",
    "`touch injected`",
    "a\nb",
    "-rf",
    "a;b&c|d",
]
SHELLS = [shell for shell in ("sh", "bash", "zsh", "fish") if shutil.which(shell)]


@pytest.mark.parametrize("name", [*EVERY, *RUNNER])
def test_commands_equal_golden_files(name, monkeypatch):
    monkeypatch.setattr(paths, "runner_name", lambda: "runner-0123456789ab.py")
    text = EVERY[name] if name in EVERY else RUNNER[name]()
    assert text + "\n" == (GOLDEN / f"{name}.sh").read_text()


@pytest.fixture(params=SHELLS)
def shell(request, tmp_path, monkeypatch):
    """Runs a command as the login shell of a node does; nothing may have been injected at the end."""
    monkeypatch.chdir(tmp_path)

    def run(command, data=b"", code=0):
        done = subprocess.run([request.param, "-c", command], input=data, capture_output=True, check=False)
        assert done.returncode == code, done.stderr.decode()
        return done

    yield run
    assert not list(tmp_path.rglob("injected"))


@pytest.fixture(params=HOSTILE)
def node(request, tmp_path):
    """A node whose workspace and interpreter have an unpleasant name."""
    folder = tmp_path / request.param
    (folder / "bin").mkdir(parents=True)
    python = folder / "bin" / "python"
    python.symlink_to(sys.executable)
    return Node(name="a", address="10.0.0.1", python=str(python), workspace=str(folder / "work"))


def test_workspace_is_created_repeatedly_without_an_error(shell, node):
    shell(commands.make_workspace(node))
    shell(commands.make_workspace(node))
    assert names_in(node.workspace) == ["bin", "jobs", "runs", "slots", "suites"]
    assert Path(node.workspace).stat().st_mode & 0o77 == 0


def test_python_is_checked_for_existence_and_version(shell, node):
    assert shell(commands.check_python(node)).stdout.decode().strip() == sys.version.split()[0]
    missing = node.model_copy(update={"python": node.python + "x"})
    done = shell(commands.check_python(missing), code=commands.NO_PYTHON)
    assert done.stderr.decode() == f"{node.python}x: no such interpreter\n"


def test_an_old_python_is_reported(shell, tmp_path):
    old = tmp_path / "python3.6"
    code = """import sys
sys.version_info, sys.version, sys.executable = (3, 6, 15), "3.6.15 (default)", "/usr/bin/python3.6"
exec(sys.argv[1])"""
    old.write_text(f"#!/bin/sh\nshift 3\nexec {sys.executable} -c '{code}' \"$1\"\n")
    old.chmod(0o755)
    done = shell(commands.check_python(NODE.model_copy(update={"python": str(old)})), code=commands.NO_PYTHON)
    assert done.stderr.decode() == "/usr/bin/python3.6 is Python 3.6.15, 3.7 is needed"


def test_files_come_and_go(shell, node):
    path = f"{node.workspace}/deep/er/file"
    shell(commands.has_file(path), code=1)
    shell(commands.read_file(path), code=commands.NO_SUCH_FILE)
    data = bytes(range(256)) * 100
    shell(commands.write_file(path, mode=0o640), data=data)
    assert (Path(path).read_bytes(), Path(path).stat().st_mode & 0o777) == (data, 0o640)
    assert names_in(Path(path).parent) == ["file"]
    shell(commands.has_file(path))
    shell(commands.has_file(path, sha256(data)))
    shell(commands.has_file(path, sha256(data[:-1])), code=1)
    assert shell(commands.read_file(path)).stdout == data
    assert shell(commands.read_file(path, offset=7, limit=9)).stdout == data[7:16]


@pytest.mark.root
def test_a_full_disk_leaves_the_old_file_and_no_rest(shell, tmp_path):
    place = tmp_path / "tiny"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], check=True)
    try:
        shell(commands.write_file(f"{place}/file"), data=b"old")
        done = shell(commands.write_file(f"{place}/file"), data=b"x" * 1_000_000, code=1)
        assert b"No space left on device" in done.stderr
        assert ((place / "file").read_text(), names_in(place)) == ("old", ["file"])
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_pack_takes_existing_files(shell, tmp_path):
    root = tmp_path / "it's $(touch injected)"
    (root / "log").mkdir(parents=True)
    secret = "log/envlog.0"
    for name in [*HOSTILE, secret, "log/workerlog.0"]:
        (root / name).write_text(name)
    (root / "link").symlink_to(root / secret)
    requested = [*HOSTILE, "missing", "link", "log", "log/workerlog.0"]
    listed, packed = pack(shell, root, requested)
    assert names_of(packed) == {*HOSTILE, "log/workerlog.0"}
    assert listed == {name: Listed(len(name), sha256(name.encode())) for name in [*HOSTILE, "log/workerlog.0"]}
    assert pack(shell, root, ["missing"]) == ({}, pack(shell, root, [])[1])
    assert names_of(pack(shell, root, [secret])[1]) == set()


def test_special_files_are_named_and_never_opened(shell, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "file").write_text("text")
    (tmp_path / "workerlog.0").symlink_to("file")
    (tmp_path / "log").mkdir()
    (tmp_path / "log/workerlog.1").symlink_to("nowhere")
    requested = ["fifo", "zero", "file", "workerlog.0", "log/workerlog.1"]
    listed, packed = pack(shell, tmp_path, requested)
    kinds = {"fifo": "FIFO", "zero": "device", "file": "", "workerlog.0": "link", "log/workerlog.1": "link"}
    assert {name: one.special for name, one in listed.items()} == kinds
    assert names_of(packed) == {"file"}
    shell(fetching.hash_beginning(str(tmp_path / "zero"), 7), code=1)
    shell(commands.read_file(str(tmp_path / "fifo")), code=commands.NO_SUCH_FILE)


def test_large_files_are_listed_and_left(shell, tmp_path):
    for name, size in (("a", 100), ("b", 101), ("c", 40), ("d", 300)):
        (tmp_path / name).write_bytes(name.encode() * size)
    listed, packed = pack(shell, tmp_path, "abcd", limit=200, each=100, together=120)
    assert names_of(packed) == {"a"}
    assert listed["c"] == Listed(40, sha256(b"c" * 40))
    assert listed["d"] == Listed(300, sha256(b"d" * 200))
    beginning = shell(fetching.hash_beginning(str(tmp_path / "d"), 7)).stdout
    assert beginning.split()[0].decode() == sha256(b"d" * 7)


def test_an_unreadable_file_is_reported_and_the_others_arrive(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
    (tmp_path / "b").chmod(0)
    text = fetching.pack_files(str(tmp_path), ["a", "b", "c"], limit=10)
    done = subprocess.run([*WITHOUT_PRIVILEGE, "sh", "-c", text], capture_output=True, check=True)
    head, _, packed = done.stdout.partition(b"\n\n")
    listed = fetching.listed_in(head.split(b"\n"), ["a", "b", "c"])
    assert {name: one.readable for name, one in listed.items()} == {"a": True, "b": False, "c": True}
    assert names_of(packed) == {"a", "c"}


def test_output_of_a_login_script_is_not_a_listing():
    for line in (b"Welcome to node a", b"9 1 x", b"\xff"):
        with pytest.raises(ValueError, match=r"."):
            fetching.listed_in([line], ["a"])


def test_names_are_requested_in_portions():
    names = [f"{number:05} it's" for number in range(20_000)]
    portions = fetching.portions(names)
    assert [name for some in portions for name in some] == names
    assert 2 < len(portions) < 20
    assert max(len(fetching.pack_files("/r", some, limit=1)) for some in portions) < 128 * 1024
    assert fetching.portions([]) == []


def pack(shell, root, names, **limits):
    """What is listed, and the archive."""
    printed = shell(fetching.pack_files(str(root), names, **{"limit": 10**6, **limits})).stdout
    head, _, packed = (b"\n" + printed).partition(b"\n\n")
    return fetching.listed_in(head.split(b"\n")[1:], names), packed


def sha256(data):
    """In hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def names_of(data):
    """Names in a tar archive."""
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {name.removeprefix("./") for name in tar.getnames()}


def names_in(folder):
    """Names in a folder, sorted."""
    return sorted(path.name for path in Path(folder).iterdir())


def archive(**files):
    """A suite's archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


def test_unpack_is_idempotent_and_verifies_the_archive(shell, node):
    shell(commands.make_workspace(node))
    data = archive(train="print(1)")
    sha = hashlib.sha256(data).hexdigest()
    shell(commands.write_file(paths.suite_archive(node, sha)), data=data)
    root = Path(paths.run_root(node, "r1"))
    shell(commands.unpack(node, "r1", sha))
    assert (root / "train").read_text() == "print(1)"
    (root / "model").write_text("a step's output")
    shell(commands.unpack(node, "r1", sha))
    assert (root / "model").exists()

    other = archive(train="print(2)")
    shell(commands.write_file(paths.suite_archive(node, sha)), data=other)
    done = shell(commands.unpack(node, "r2", sha), code=commands.ARCHIVE_DAMAGED)
    assert f"sha256 is {hashlib.sha256(other).hexdigest()}, not {sha}" in done.stderr.decode()
    assert not Path(paths.run_root(node, "r2")).exists()
    assert not Path(paths.suite_archive(node, sha)).exists()

    shell(commands.remove_run(node, "r1"))
    assert names_in(Path(node.workspace) / "runs") == []


def test_files_of_a_run_are_taken_over_once_and_stay_unchanged(shell, node):
    root, mine = (Path(paths.run_root(node, run)) for run in ("r1", "r2"))
    (root / "out").mkdir(parents=True)
    (root / "out" / "it's best.pdparams").write_text("weights")
    (root / "eval.log").write_text("0.5")
    wanted = {"needs": ["out/*best.pdparams*"], "without": ["eval.log"]}
    gone = shell(commands.inherit(node, "r2", "r1", "abc", **wanted), code=commands.NO_SUCH_FILE)
    assert gone.stderr.decode() == f"{root} no longer exists\n"
    Path(f"{root}.sha256").write_text("abc\n")
    lost = shell(commands.inherit(node, "r2", "r1", "abc", needs=["out/*.pdopt"]), code=commands.NO_SUCH_FILE)
    assert lost.stderr.decode() == f"{root}/out/*.pdopt no longer exists\n"
    assert not mine.exists()
    shell(commands.inherit(node, "r2", "r1", "abc", **wanted))
    weights = mine / "out" / "it's best.pdparams"
    assert weights.stat().st_ino == (root / "out" / "it's best.pdparams").stat().st_ino, "not copied"
    assert (names_in(mine), (root / "eval.log").read_text()) == (["out"], "0.5")
    (mine / "eval.log").write_text("0.6")
    shell(commands.inherit(node, "r2", "r1", "abc", **wanted))
    assert (mine / "eval.log").read_text() == "0.6", "once"
    shell(commands.unpack(node, "r2", "abc"))
    assert weights.exists(), "the code is there with it"
    shell(commands.remove_run(node, "r2"))
    assert (root / "out" / "it's best.pdparams").read_text() == "weights"


def test_root_is_a_link_into_an_archive_that_holds_more(shell, node):
    shell(commands.make_workspace(node))
    data = archive(**{"it's/tests/train": "print(1)", "package": "print(2)"})
    sha = hashlib.sha256(data).hexdigest()
    shell(commands.write_file(paths.suite_archive(node, sha)), data=data)
    for _ in range(2):
        shell(commands.unpack(node, "r1", sha, below="it's/tests"))
    root, mine = (Path(paths.run_root(node, run)) for run in ("r1", "r2"))
    assert [(root / name).read_text() for name in ("train", "../../package")] == ["print(1)", "print(2)"]
    (root / "best.pdparams").write_text("weights")
    (root / "eval.log").write_text("0.5")
    wanted = {"needs": ["*.pdparams"], "without": ["eval.log"], "below": "it's/tests"}
    shell(commands.inherit(node, "r2", "r1", sha, **wanted))
    assert names_in(mine) == ["best.pdparams", "train"]
    assert mine.resolve() != root.resolve()
    assert (mine / "../../package").read_text() == "print(2)"
    shell(commands.remove_run(node, "r1"))
    assert (mine / "best.pdparams").read_text() == "weights"


def test_shims_run_the_nodes_interpreter(shell, node):
    shell(commands.make_workspace(node))
    shell(commands.make_shims(node, "r1"))
    folder = paths.run_bin(node, "r1")
    assert names_in(folder) == sorted(commands.SHIMS)
    code = "import sys; print(sys.executable, sys.argv[1:])"
    for name in ("python", "python3", "python3.7"):
        done = subprocess.run([f"{folder}/{name}", "-c", code, "a b", "$x"], capture_output=True, text=True)
        assert done.stdout == f"{node.python} ['a b', '$x']\n"
    pip = Path(folder, "pip").read_text()
    assert pip.startswith("#!/bin/sh\nexec ")
    assert pip.endswith(' -m pip "$@"\n')


def test_runner_is_reached_through_every_name(shell, node):
    from tipcflow.remote.bundle import runner_bytes

    shell(commands.make_workspace(node))
    shell(commands.write_file(paths.runner_path(node)), data=runner_bytes())
    job = paths.job_dir(node, "r1", "it's $(touch injected)/x", 1)
    assert json.loads(shell(commands.start(node, job)).stdout)["state"] == "absent"
    assert json.loads(shell(commands.poll(node, job)).stdout)["state"] == "absent"
    events = shell(commands.watch(node, job, seconds=1, resume={"it's": 1})).stdout
    assert json.loads(events) == {"event": "absent"}
    Path(job).mkdir(parents=True)
    shell(commands.stop(node, job, "it's $(touch injected)\n", StoppedBy.USER))
    requested = json.loads(Path(job, "stop").read_text())
    assert requested == {"reason": "it's $(touch injected)\n", "by": "user"}
    listed = json.loads(shell(commands.list_ours(node)).stdout)
    assert (listed["processes"], listed["jobs"]) == ([], [])
    assert json.loads(shell(commands.reap(node, job="it's")).stdout)["killed"] == []
