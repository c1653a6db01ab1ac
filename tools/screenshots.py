"""Retakes the pictures in docs/screenshots in a local Airflow, on the sample history and one failed run.

Requires Chromium. The api-server is real, with its login; no run is executed, and every page says so.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "screenshots"
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from failed_run import add_failed_run  # noqa: E402
from tests.ui import chromium, server  # noqa: E402

from devcluster.sample_history.fill import fill  # noqa: E402
from tipcflow.domain import Status  # noqa: E402
from tipcflow.store import Store  # noqa: E402

_FRAME = "document.querySelector('iframe[title=Certification]')?.contentDocument"


class Picture(NamedTuple):
    """A page and the size of its picture.

    Attributes:
        path: below `/certification/`; `{failed}` and `{passing}` are runs.
        shown: selector of an element that the page has when it is complete.
        top: selector of the element at which the picture begins; only without a frame.
        is_framed: inside Airflow's navigation.
    """

    path: str
    shown: str
    width: int
    height: int
    scheme: str = "light"
    top: str = ""
    is_framed: bool = False


TAKEN = {
    "list-in-airflow.png": Picture("", "td .st-failed", 1280, 720, is_framed=True),
    "failed-run.png": Picture("runs/{failed}", "#steps", 1280, 900, is_framed=True),
    "losses.png": Picture("runs/{failed}", "#loss-chart[data-drawn]", 1280, 700, top="#loss"),
    "passing-run-dark.png": Picture("runs/{passing}", "#steps", 1280, 900, "dark", is_framed=True),
    "narrow-run.png": Picture("runs/{failed}", "#steps", 390, 844),
    "nodes.png": Picture("nodes?hours=168", "#nodes", 1280, 780),
}


def _take(page: chromium.Page, url: str, picture: Picture, path: Path, runs: dict[str, str]) -> None:
    page.show(picture.width, picture.height, picture.scheme)
    address = f"{url}/certification/{picture.path.format(**runs)}"
    document = _FRAME if picture.is_framed else "document"
    if picture.is_framed:
        page.open(f"{url}/plugin/certification")
        page.wait(f"{_FRAME}?.querySelector('#main')")
        page.evaluate(f"{_FRAME}.location.assign({address!r})")
    else:
        page.open(address)
    if picture.top:
        page.wait(f"document.readyState === 'complete' && document.querySelector({picture.top!r})")
        page.evaluate(f"document.querySelector({picture.top!r}).scrollIntoView()")
    page.wait(f"{document}?.querySelector({picture.shown!r})")
    page.wait(f"{document}.fonts.status === 'loaded'")
    # Airflow's frame fades in.
    page.wait("document.getAnimations().every(each => each.playState !== 'running')")
    page.keep(path)


def main() -> None:
    """Fill, serve, take."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=PICTURES, help="folder of the pictures")
    parser.add_argument("--only", default="", help="pictures whose name begins with this")
    wanted = parser.parse_args()
    wanted.into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        home.mkdir()
        database = f"sqlite:///{home / 'tipcflow.db'}"
        fill(database, print)
        with Store.open(database) as store:
            passing = next(run for run in store.runs.newest(limit=200) if run.status is Status.PASS)
            runs = {"failed": add_failed_run(store, home, time.time() - 3600), "passing": passing.id}
        with server.running(Path(folder, "airflow"), home) as running, chromium.running() as page:
            page.log_in(running.url, running.token())
            for name, picture in TAKEN.items():
                if name.startswith(wanted.only):
                    _take(page, running.url, picture, wanted.into / name, runs)
                    print(wanted.into / name)


if __name__ == "__main__":
    main()
