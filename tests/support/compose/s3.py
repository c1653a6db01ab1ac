"""A local S3 service: moto's server, whose objects are in memory."""

import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL

from tests.support.compose.local import free_port, process, until

LOGIN = {"AWS_ACCESS_KEY_ID": "tipcflow", "AWS_SECRET_ACCESS_KEY": "for-tests", "AWS_DEFAULT_REGION": "eu-west-1"}


@dataclass(frozen=True)
class Service:
    """A running service and the environment of its clients."""

    url: str

    @property
    def env(self) -> Mapping[str, str]:
        return {**LOGIN, "AWS_ENDPOINT_URL": self.url}

    def make_bucket(self, name: str) -> None:
        request = urllib.request.Request(f"{self.url}/{name}", method="PUT")
        urllib.request.urlopen(request, timeout=30).close()


@contextmanager
def s3_service() -> Iterator[Service]:
    """Start a service without buckets."""
    port = free_port()
    server = Path(sys.executable).with_name("moto_server")
    with process(server, "-H", "127.0.0.1", "-p", port, stdout=DEVNULL, stderr=DEVNULL):
        service = Service(f"http://127.0.0.1:{port}")
        until(lambda: _responds(service.url))
        yield service


def _responds(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except OSError:
        return False
    return True
