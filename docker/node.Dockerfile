# A CPU node: an SSH server, and Paddle in its own environment. No Airflow and no tipcflow: the runner is copied over SSH.
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

# libgomp1 for Paddle, ping for connectivity checks between nodes, tini for pods (docker/kubernetes), where no engine adds a
# first process that adopts orphans; the rest for suites' prepare scripts.
ARG APT_PACKAGES
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        bash ca-certificates curl git iputils-ping libgomp1 openssh-server procps tar tini unzip util-linux wget $APT_PACKAGES \
    && rm -rf /var/lib/apt/lists/* /etc/ssh/ssh_host_*

ARG PIP_INDEX_URL
COPY requirements/node-cpu.txt /opt/tipcflow/requirements/
RUN rest=${PIP_INDEX_URL#*://}; case "${rest%%/*}" in *@*) \
        echo "error: PIP_INDEX_URL contains a login, which the image would store; use an index without a login" >&2; exit 2 ;; \
    esac; \
    python -m venv /opt/tipcflow/node-cpu \
    && /opt/tipcflow/node-cpu/bin/pip install --no-cache-dir --require-hashes \
        -r /opt/tipcflow/requirements/node-cpu.txt

# `*` matches no password; `!`, which useradd sets, would also lock the account for keys. Pods name the user by its
# ID, which some base images have already: the user then gets the next one.
RUN useradd $(getent passwd 1000 >/dev/null || echo --uid 1000) --user-group --create-home --shell /bin/bash tipcflow \
    && usermod --password '*' tipcflow \
    && install --directory --owner tipcflow --group tipcflow /var/lib/tipcflow \
    && install --directory --mode 0755 /run/sshd /etc/tipcflow
COPY docker/sshd_config /etc/tipcflow/
COPY docker/node_entrypoint.sh /opt/tipcflow/
ENTRYPOINT ["/opt/tipcflow/node_entrypoint.sh"]
