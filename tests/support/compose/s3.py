"""A local S3 service: moto's server, whose objects are in memory."""

import json
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import boto3
from tests.support.compose.local import free_port, process, until

LOGIN = {"AWS_ACCESS_KEY_ID": "tipcflow", "AWS_SECRET_ACCESS_KEY": "for-tests", "AWS_DEFAULT_REGION": "eu-west-1"}
# Requests without a login, with which `Logins` begins: the service's INITIAL_NO_AUTH_ACTION_COUNT.
OPEN_REQUESTS = 4
_USER = "tipcflow"
_ANY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


class Logins:
    """The logins of a service that refuses requests without one after `OPEN_REQUESTS`.

    Attributes:
        current: the newest, as a file in the format of ~/.aws/config.
    """

    def __init__(self, url: str, bucket: str) -> None:
        self._url, self._keys = url, ["any", "any"]
        self._client("s3").create_bucket(Bucket=bucket)
        self._client("iam").create_user(UserName=_USER)
        self._client("iam").put_user_policy(UserName=_USER, PolicyName="any", PolicyDocument=json.dumps(_ANY))
        self.add()

    def add(self) -> None:
        """Make a new login; the one before remains valid."""
        made = self._client("iam").create_access_key(UserName=_USER)["AccessKey"]
        self._keys = [made["AccessKeyId"], made["SecretAccessKey"]]

    def remove(self, key: str) -> None:
        self._client("iam").delete_access_key(UserName=_USER, AccessKeyId=key)

    @property
    def key(self) -> str:
        return self._keys[0]

    @property
    def current(self) -> str:
        names = ("aws_access_key_id", "aws_secret_access_key", "region", "endpoint_url")
        values = (*self._keys, "us-east-1", self._url)
        return "[default]\n" + "".join(f"{name} = {value}\n" for name, value in zip(names, values, strict=True))

    def _client(self, service: str) -> Any:
        keys = dict(zip(("aws_access_key_id", "aws_secret_access_key"), self._keys, strict=True))
        return boto3.client(service, endpoint_url=self._url, region_name="us-east-1", **keys)


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
