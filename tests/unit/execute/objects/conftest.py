"""Object stores of each kind."""

from collections.abc import Iterator

import pytest
from tests.support.compose.s3 import Service, s3_service


@pytest.fixture(scope="session")
def s3() -> Iterator[Service]:
    """A local S3 service."""
    with s3_service() as service:
        yield service
