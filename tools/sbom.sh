#!/usr/bin/env bash
# Bill of materials (CycloneDX 1.6, JSON) of the packages pinned in requirements/, into sbom/; with --audit, compares
# them with the databases of known vulnerabilities (network; tools/audit.py). Called by `make sbom` and `make audit`.
set -euo pipefail
cd "$(dirname "$0")/.."
state=${TIPCFLOW_HOME:-.tipcflow}
env=$state/envs/audit

if [ ! -e "$env/.requirements" ] || [ requirements/audit.txt -nt "$env/.requirements" ]; then
    "$state/uv/bin/uv" venv --quiet --clear --no-python-downloads --python .venv/bin/python "$env"
    "$state/uv/bin/uv" pip sync --quiet --python "$env/bin/python" --require-hashes requirements/audit.txt
    touch "$env/.requirements"
fi
if [ "${1:-}" = --audit ]; then
    exec .venv/bin/python tools/audit.py ${AUDIT_OFFLINE_OK:+--offline-ok} "$env/bin/pip-audit" ${AUDIT_OPTIONS:-}
fi
mkdir -p sbom
mapfile -t names < <(cd requirements && printf '%s\n' *.txt | sed 's/\.txt$//')
# It warns that requirements have no edges between packages. Validation would take 16 s for dev alone, and tests the program.
printf '%s\n' "${names[@]}" | PYTHONWARNINGS=ignore xargs -P "$(nproc)" -I{} "$env/bin/cyclonedx-py" requirements requirements/{}.txt \
    --pyproject pyproject.toml --mc-type application --output-reproducible --spec-version 1.6 --no-validate --output-format JSON \
    --output-file sbom/{}.cdx.json
printf 'sbom/%s.cdx.json\n' "${names[@]}"
