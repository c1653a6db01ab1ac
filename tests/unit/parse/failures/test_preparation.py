"""What the log of a preparation reports although its script ended with 0."""

import pytest

from tipcflow.domain.run.failure import FailureClass
from tipcflow.parse.failures.failure import find_failure
from tipcflow.parse.failures.preparation import preparation_trouble

CLAS = """--2026-11-21 10:00:00--  https://paddle-imagenet-models-name.bj.bcebos.com/data/ILSVRC2012.tar
Resolving paddle-imagenet-models-name.bj.bcebos.com... failed: Temporary failure in name resolution.
wget: unable to resolve host address ‘paddle-imagenet-models-name.bj.bcebos.com’
tar: ILSVRC2012.tar: Cannot open: No such file or directory
tar: Error is not recoverable: exiting now
mv: cannot stat 'ILSVRC2012': No such file or directory
"""


@pytest.mark.parametrize(
    ("text", "kind", "result"),
    [
        (CLAS, FailureClass.DOWNLOAD, "failed: Temporary failure in name resolution."),
        ("tar: Unexpected EOF in archive\n", FailureClass.DOWNLOAD, "tar: "),
        # An error page instead of the archive.
        ("tar: This does not look like a tar archive\n", FailureClass.DOWNLOAD, "tar: "),
        ("gzip: stdin: not in gzip format\n", FailureClass.DOWNLOAD, "gzip: "),
        ("  End-of-central-directory signature not found.\n", FailureClass.DOWNLOAD, "End-of"),
        ("tar: a: Cannot write: No space left on device\n", FailureClass.DISK, "No space left"),
        ("mkdir: cannot create directory 'dataset': File exists\nINFO all done\n", None, ""),
        ("rm: cannot remove 'ILSVRC2012': No such file or directory\n", None, ""),
    ],
)  # fmt: skip
def test_the_first_cause_counts(text: str, kind: FailureClass | None, result: str) -> None:
    found = preparation_trouble(text.splitlines())
    assert (found and found.failure_class) is kind
    assert found is None or result in found.log_line


def test_path_checked_by_a_script_is_a_missing_file() -> None:
    """PaddleClas after its download failed: the head of the traceback does not name the cause."""
    text = (
        "Traceback (most recent call last):\n"
        '  File "ppcls/data/dataloader/imagenet_dataset.py", line 40, in _load_anno\n'
        '    assert os.path.exists(self._cls_path), f"path {self._cls_path} does not exist."\n'
        "AssertionError: path ./dataset/ILSVRC2012/train_list.txt does not exist.\n"
    )
    found = find_failure(text)
    assert found is not None
    assert found.failure_class is FailureClass.DATA_MISSING
    assert "train_list.txt" in found.log_line
