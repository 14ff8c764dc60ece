"""Prints the crates that are linked into the library as JSON of CycloneDX 1.5. Reads the output of `cargo metadata`.

Usage: sbom.py Cargo.lock TREE EPOCH, with the output of `cargo tree`.
"""

import json
import sys
import tomllib
import uuid
from datetime import datetime, timezone
from pathlib import Path


def reference(package):
    """The package URL, which also identifies the crate in this list."""
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package, checksums):
    """A crate as a component."""
    found = {
        "type": "library",
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
        "scope": "required",
        # Old crates separate the licences of which the user chooses one by a slash.
        "licenses": [{"expression": package["license"].replace("/", " OR ")}],
        "purl": reference(package),
    }
    if package["description"]:
        found["description"] = " ".join(package["description"].split())
    checksum = checksums.get((package["name"], package["version"]))
    if checksum:
        found["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["repository"]:
        found["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return found


def linked(metadata, tree):
    """The identifiers of the crates that are linked into the library, each with those that it uses."""
    packages = {package["id"]: package for package in metadata["packages"]}
    # Metadata is about the workspace, whose other members use more features of the crates. The tree is that of the library alone.
    lines = [line.split()[:2] for line in tree.splitlines()]
    names = {(name, version.removeprefix("v")) for name, version in lines}
    found = {identifier for identifier, package in packages.items() if (package["name"], package["version"]) in names}
    uses = {}
    for node in metadata["resolve"]["nodes"]:
        if node["id"] in found:
            normal = [used["pkg"] for used in node["deps"] if any(kind["kind"] is None for kind in used["dep_kinds"])]
            uses[node["id"]] = [used for used in normal if used in found]
    if len(uses) != len(names):
        raise SystemExit(f"the tree has {len(names)} crates, and the metadata {len(uses)} of them")
    return packages, uses


def main(lock, tree, epoch):
    """Prints the list."""
    metadata = json.load(sys.stdin)
    packages, uses = linked(metadata, Path(tree).read_text())
    root = metadata["resolve"]["root"]
    locked = tomllib.loads(Path(lock).read_text())["package"]
    checksums = {(package["name"], package["version"]): package.get("checksum") for package in locked}
    components = {identifier: component(packages[identifier], checksums) for identifier in uses}
    subject = components.pop(root)
    del subject["scope"]
    found = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(int(epoch), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "lifecycles": [{"phase": "build"}],
            "component": subject,
        },
        "components": sorted(components.values(), key=lambda component: component["bom-ref"]),
        "dependencies": sorted(
            (
                {"ref": reference(packages[user]), "dependsOn": sorted({reference(packages[used]) for used in all_used})}
                for user, all_used in uses.items()
            ),
            key=lambda dependency: dependency["ref"],
        ),
    }
    # The same content has the same number, so that another build produces the same file.
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(found, sort_keys=True))
    print(json.dumps({"serialNumber": f"urn:uuid:{number}", **found}, indent=2, ensure_ascii=False))


main(*sys.argv[1:])
