"""A suite with a git history."""

import subprocess

from tests.support.certify import Site


class History:
    """A suite whose later commits change nothing but one."""

    def __init__(self, site: Site, commits: int) -> None:
        self.site, self.commits = site, commits
        self.git("init", "-q", "-b", "main")
        self.commit("Start")

    def git(self, *words: str) -> None:
        command = [
            "git",
            "-C",
            str(self.site.suite),
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            *words,
        ]
        subprocess.run(command, check=True, capture_output=True)

    def commit(self, title: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", title)

    def plant(self, at: int, old: str, new: str) -> None:
        """Write all commits; one of them replaces text of the training script."""
        train = self.site.suite / "train.py"
        for number in range(1, self.commits + 1):
            (self.site.suite / "notes.txt").write_text(str(number))
            if number == at:
                assert old in train.read_text()
                train.write_text(train.read_text().replace(old, new, 1))
            self.commit(f"Change {number}")
