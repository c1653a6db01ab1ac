#!/usr/bin/env bash
# Bill of materials (CycloneDX 1.6, JSON) of the packages pinned in requirements/, into sbom/; with --audit, compares
# them with the databases of known vulnerabilities (network). Called by `make sbom` and `make audit`.
set -euo pipefail
cd "$(dirname "$0")/.."
state=${TIPCFLOW_HOME:-.tipcflow}
env=$state/envs/audit
# What is deployed: the controller with Airflow, and the environments of nodes.
files=(scheduler node-cpu node-ps)

if [ ! -e "$env/.requirements" ] || [ requirements/audit.txt -nt "$env/.requirements" ]; then
    "$state/uv/bin/uv" venv --quiet --clear --no-python-downloads --python .venv/bin/python "$env"
    "$state/uv/bin/uv" pip sync --quiet --python "$env/bin/python" --require-hashes requirements/audit.txt
    touch "$env/.requirements"
fi
if [ "${1:-}" = --audit ]; then
    status=0
    for name in "${files[@]}"; do
        "$env/bin/pip-audit" --disable-pip --require-hashes --requirement "requirements/$name.txt" ${AUDIT_OPTIONS:-} || status=$?
    done
    exit "$status"
fi
mkdir -p sbom
for name in "${files[@]}"; do
    # It warns that requirements have no edges between packages.
    PYTHONWARNINGS=ignore "$env/bin/cyclonedx-py" requirements "requirements/$name.txt" --pyproject pyproject.toml --mc-type application \
        --output-reproducible --spec-version 1.6 --validate --output-format JSON --output-file "sbom/$name.cdx.json"
done
printf 'sbom/%s.cdx.json\n' "${files[@]}"
