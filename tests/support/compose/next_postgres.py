"""A base image with the next major version of PostgreSQL, from another release of Debian."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.support.compose.engine import Engine
from tests.support.programs import need

VERSION = "17"
_IMAGE, _FILES = f"tipcflow-test-postgres:{VERSION}", f"tipcflow-test-postgres-files:{VERSION}"
_RELEASE = "trixie"
# As in PostgreSQL's images from version 18 on, the data is in a folder of its version below the volume.
_DOCKERFILE = f"""FROM {_FILES}
RUN install --directory --mode 777 /docker-entrypoint-initdb.d
COPY docker-entrypoint.sh /usr/local/bin/
ENV PGDATA=/var/lib/postgresql/{VERSION}/docker
ENV PATH=/usr/lib/postgresql/{VERSION}/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["postgres"]
"""


def image(engine: Engine) -> str:
    """Make the image, unless it is kept from before; needs Debian's mirror."""
    if engine.run("images", "--quiet", _IMAGE):
        return _IMAGE
    program = need("debootstrap")
    folder = Path(tempfile.mkdtemp(prefix="tipcflow-debian-"))
    try:
        words = [program, "--variant=minbase", f"--include=postgresql-{VERSION}", _RELEASE, folder / "files"]
        subprocess.run(words, check=True, capture_output=True, timeout=900)
        pack = f"tar --create --directory {folder}/files . | docker import - {_FILES}"
        subprocess.run(["bash", "-euo", "pipefail", "-c", pack], env=engine.env, check=True, timeout=600)
        (folder / "Dockerfile").write_text(_DOCKERFILE)
        shutil.copy2(Path(__file__).with_name("docker-entrypoint.sh"), folder)
        (folder / ".dockerignore").write_text("files\n")
        engine.run("build", "--tag", _IMAGE, folder, timeout=600)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return _IMAGE
