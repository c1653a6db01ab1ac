# Airflow with tipcflow, with the packages pinned in requirements/ by version and hash. No Paddle.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm
FROM ${PYTHON_IMAGE}

ARG APT_MIRROR
ARG CA_CERTIFICATE
# A package mirror and a certificate authority of your network, if any (docs/tutorial/compose.md). `docker history` shows build
# arguments, so addresses with a login are refused.
RUN rest=${APT_MIRROR#*://}; case "${rest%%/*}" in *@*) \
        echo "error: APT_MIRROR contains a login, which the image would store; use a mirror without a login" >&2; exit 2 ;; \
    esac; \
    if [ -n "$APT_MIRROR" ]; then \
        find /etc/apt -name '*.sources' -o -name '*.list' | xargs sed -i "s#https\?://deb.debian.org#$APT_MIRROR#"; \
    fi \
    && if [ -n "$CA_CERTIFICATE" ]; then \
        mkdir -p /usr/local/share/ca-certificates \
        && echo "$CA_CERTIFICATE" | base64 -d >/usr/local/share/ca-certificates/site.crt \
        && update-ca-certificates \
        && printf '[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n' >/etc/pip.conf; \
    fi

# git clones suites with a URL; tini reaps the processes of tasks whose parents were killed.
# More Debian packages, for example kubernetes-client for nodes that are pods.
ARG APT_PACKAGES
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git tini $APT_PACKAGES \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/tipcflow
ARG PIP_INDEX_URL
COPY requirements/build.txt requirements/scheduler.txt requirements/
RUN rest=${PIP_INDEX_URL#*://}; case "${rest%%/*}" in *@*) \
        echo "error: PIP_INDEX_URL contains a login, which the image would store; use an index without a login" >&2; exit 2 ;; \
    esac; \
    pip install --no-cache-dir --require-hashes -r requirements/build.txt \
    && pip install --no-cache-dir --require-hashes -r requirements/scheduler.txt

COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY operators operators
COPY plugins plugins
COPY dags dags
COPY configs configs
COPY examples examples
COPY docker/airflow_entrypoint.py docker/clean_airflow.sh docker/health.py docker/
# Airflow's user cannot write bytecode here, so each process would compile the sources again.
RUN pip install --no-cache-dir --no-deps --no-build-isolation --editable . \
    && python -m compileall -q src operators plugins docker

# A checkout made with umask 077 is readable for Airflow's user, too.
# Probes of Airflow's Helm chart call /entrypoint.
RUN chmod --recursive a+rX /opt/tipcflow \
    && chmod a+x docker/airflow_entrypoint.py docker/clean_airflow.sh \
    && ln --symbolic /opt/tipcflow/docker/airflow_entrypoint.py /entrypoint

# New volumes inherit the owner and mode of these folders. A container may run as any user of the group root (OpenShift).
RUN groupadd --gid 50000 airflow \
    && useradd --uid 50000 --gid airflow --no-create-home --home-dir /var/lib/airflow airflow \
    && install --directory --owner airflow --group root --mode 0775 /var/lib/airflow /var/lib/airflow/logs \
        /var/lib/tipcflow /var/lib/tipcflow-objects
USER airflow

ENV AIRFLOW_HOME=/var/lib/airflow \
    AIRFLOW__CORE__DAGS_FOLDER=/opt/tipcflow/dags \
    AIRFLOW__CORE__PLUGINS_FOLDER=/opt/tipcflow/plugins \
    TIPCFLOW_HOME=/var/lib/tipcflow \
    TIPCFLOW_CONFIG_DIR=/opt/tipcflow/configs \
    REQUESTS_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt \
    PYTHONUNBUFFERED=1
ENTRYPOINT ["python", "/opt/tipcflow/docker/airflow_entrypoint.py"]
