"""A repository with a suite, and configs that name it."""

import subprocess
from pathlib import Path

PARAMS = "test_tipc/configs/net/train_infer_python.txt"


def git(folder: Path, *args: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", str(folder), *identity, *args], capture_output=True, check=True, text=True)
    return done.stdout.strip()


def write_repository(root: Path) -> Path:
    """A checkout whose folder `suite` is the suite; two commits, a tag on the first."""
    folder = root / "suite"
    (folder / PARAMS).parent.mkdir(parents=True)
    (folder / PARAMS).write_text("first\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "größe ä.txt").write_text("x")
    (folder / "link").symlink_to("run.sh")
    git(root.parent, "init", "-q", "-b", "main", str(root))
    git(root, "add", "-A")
    git(root, "commit", "-qm", "one")
    git(root, "tag", "v1")
    (folder / PARAMS).write_text("second\n")
    git(root, "commit", "-qam", "two")
    return root


def write_site(folder: Path) -> Path:
    """The repository in `checkout`, and a config folder with suite `s` and cluster `c`; return the latter."""
    root = write_repository(folder / "checkout")
    configs = folder / "configs"
    for name in ("suites", "clusters"):
        (configs / name).mkdir(parents=True)
    (configs / "suites" / "s.yaml").write_text(
        f"name: s\nfolder: {root / 'suite'}\ndialects: [tipc]\nparams: ['test_tipc/configs/**/*.txt']\n"
    )
    (configs / "clusters" / "c.yaml").write_text(
        "name: c\nnodes:\n  - {name: a, address: 127.0.0.1, ssh: {host: 127.0.0.1}, python: /p, workspace: /w}\n"
    )
    return configs
