# Stands in for the image python:3.11-slim-bookworm: this machine's interpreter and the packages of requirements/.
ARG BASE
FROM ${BASE}
ADD python.tar /usr/local/
RUN ldconfig \
    && cd /usr/local/bin \
    && ln --symbolic --force python3.11 python \
    && ln --symbolic --force python3.11 python3 \
    && printf '#!/bin/sh\nexec python -m pip "$@"\n' >pip \
    && chmod +x pip \
    && pip --version
