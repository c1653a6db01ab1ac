"""Records what the schemas of Kubernetes say about the fields that docker/kubernetes/ uses, for its test.

    tools/kubernetes_fields.py FOLDER > tests/unit/docker/kubernetes_fields.json

FOLDER has the JSON schema of each kind as `APIVERSION KIND.json` with `_` instead of `/`, and the chart's
values.schema.json as values.json; the schema of a custom resource is the openAPIV3Schema of its version. A field
that no schema has is an error.
"""

import json
import sys
from pathlib import Path
from typing import Any

import yaml

MANIFESTS = Path(__file__).resolve().parents[1] / "docker" / "kubernetes"


def fields(value: Any, schema: dict[str, Any], root: dict[str, Any], path: str = "") -> dict[str, list[str]]:
    """Return path -> types of all leaves of a document; `*` stands for the index of a list."""
    while "$ref" in schema:
        schema = root["definitions"][schema["$ref"].rpartition("/")[2]]
    known: dict[str, list[str]] = {}
    if isinstance(value, dict):
        for key, below in value.items():
            inner = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
            if not isinstance(inner, dict):
                raise SystemExit(f"unknown field {path}.{key}")
            known |= fields(below, inner, root, f"{path}.{key}")
        return known
    if isinstance(value, list):
        for below in value:
            known |= fields(below, schema["items"], root, f"{path}.*")
        return known
    if schema.get("x-kubernetes-int-or-string") or "oneOf" in schema:
        return {path: ["integer", "string"]}
    types = schema.get("type", "string")
    return {path: sorted({*([types] if isinstance(types, str) else types)} - {"null"})}


def main(folder: Path) -> None:
    """Print the recorded fields as JSON."""
    recorded: dict[str, dict[str, list[str]]] = {}
    for file in sorted(MANIFESTS.glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            kind = document.get("kind", "values")
            name = f"{document['apiVersion']} {kind}" if "apiVersion" in document else kind
            schema = json.loads((folder / f"{name.replace('/', '_')}.json").read_text())
            recorded[name] = recorded.get(name, {}) | fields(document, schema, schema)
    print(json.dumps(recorded, indent=1, sort_keys=True))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
