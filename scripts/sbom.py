"""Adds the hashes of the lock to an SBOM of an environment, and checks the result.

    python sbom.py ENVIRONMENT.json REQUIREMENTS.json OUT.json

The first two are what `cyclonedx-py environment` and `cyclonedx-py requirements` write: one knows licences
and who depends on whom, the other hashes. Links to package indexes are left out.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

#: What says more about the machine that made the file than about the package.
FOREIGN = re.compile(r"file:/|/(?:home|root|tmp|opt|Users|usr)/|pypi\.|/simple/")


def main(environment: str, requirements: str, out: str) -> None:
    """Write the SBOM, or end with what is wrong with it."""
    bom = json.loads(Path(environment).read_text())
    hashes = {name(one): distribution(one)["hashes"] for one in read(requirements) if distribution(one)}
    for component in bom["components"]:
        component["hashes"] = hashes.pop(name(component), [])
        if not component["hashes"] or not component.get("licenses"):
            sys.exit(f"SBOM: {name(component)} has no hash or no licence")
    for component in [*bom["components"], *bom["metadata"]["tools"]["components"]]:
        links = [link for link in component.get("externalReferences", []) if not FOREIGN.search(link["url"])]
        component["externalReferences"] = links
    text = json.dumps(bom, indent=1, sort_keys=True) + "\n"
    if found := FOREIGN.search(text):
        sys.exit(f"SBOM: {found[0]!r} tells of the machine: {text[found.start() - 80 : found.end() + 80]}")
    if trouble := JsonStrictValidator(SchemaVersion.from_version(bom["specVersion"])).validate_str(text):
        sys.exit(f"SBOM: {trouble}")
    Path(out).write_text(text)
    print(f"{out}: {len(bom['components'])} packages, each with hashes and licence")


def read(path: str) -> list[dict[str, Any]]:
    """Components of an SBOM."""
    components: list[dict[str, Any]] = json.loads(Path(path).read_text())["components"]
    return components


def name(component: dict[str, Any]) -> str:
    """Name and version, as indexes spell them."""
    return f"{re.sub(r'[-_.]+', '-', component['name']).lower()}=={component['version']}"


def distribution(component: dict[str, Any]) -> dict[str, Any]:
    """Where the component comes from, with hashes."""
    links = [link for link in component.get("externalReferences", []) if link.get("hashes")]
    return links[0] if links else {}


if __name__ == "__main__":
    main(*sys.argv[1:])
