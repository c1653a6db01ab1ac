"""A git repository with PaddleOCR's layout and interfaces, and code of this project (tests/support/ocr_suite)."""

import shutil
import subprocess
from pathlib import Path

from tests.support.certify import ROOT

SUITE = ROOT / "tests" / "support" / "ocr_suite"
REPORT = ROOT / "examples" / "mobilenet_v3_small" / "deploy" / "inference_python" / "autolog.py"
# PaddleOCR's own params file, and one for the example of the multi-node specification.
FLEET = "test_tipc/configs/ch_ppocr_mobile_v2_0_det/train_linux_gpu_fleet_normal_infer_python_linux_gpu_cpu.txt"
FLEET_AMP = "test_tipc/configs/ppocr_det_mobile/train_linux_gpu_fleet_amp_infer_python_linux_gpu_cpu.txt"
IMAGES = "https://paddleocr.bj.bcebos.com/dygraph_v2.0/test/icdar2015_lite.tar"


def ocr_tree(folder: Path) -> Path:
    """Copy the files; reports of legs come from the sample suite."""
    shutil.copytree(SUITE, folder, ignore=shutil.ignore_patterns("__pycache__", "README.md"))
    shutil.copy(REPORT, folder / "tools" / "infer" / "autolog.py")
    return folder


def ocr_repository(folder: Path) -> Path:
    """Make the repository with one commit."""
    ocr_tree(folder)
    author = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "detection of text boxes"]):
        subprocess.run(["git", "-C", str(folder), *author, *command], check=True, capture_output=True)
    return folder
