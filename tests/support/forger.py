"""Somebody who forges bundles: edits that renew what would give them away."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpsynth._util.strict_json import written
from dpsynth.bundle import verify
from dpsynth.errors import VerificationError


class Forger:
    """Edits a bundle as somebody would who knows the format and renews what would give it away."""

    def __init__(self, bundle: Path) -> None:
        self.bundle = bundle

    def read(self, file: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.bundle / file).read_text())
        return document

    def relist(self) -> None:
        """Renew the sizes and hashes of the manifest."""
        manifest = self.read("datapackage.json")
        for item in manifest["resources"]:
            path = self.bundle / item["path"]
            if path.is_file():
                content = path.read_bytes()
                counted = "bytes" if "bytes" in item else "dpsynth:bytes"
                item[counted] = len(content)
                item["hash"] = "sha256:" + hashlib.sha256(content).hexdigest()
        (self.bundle / "datapackage.json").write_bytes(written(manifest))

    def edit(self, file: str, change: Callable[[dict[str, Any]], Any]) -> None:
        document = self.read(file)
        change(document)
        (self.bundle / file).write_bytes(written(document))
        self.relist()

    def recertify(self, change: Callable[[dict[str, Any]], Any]) -> None:
        """Edit the certificate and renew the digest of its plan."""

        def consistently(document: dict[str, Any]) -> None:
            change(document)
            plan = {key: document[key] for key in ("epsilon", "delta", "events")}
            text = json.dumps(plan, sort_keys=True, separators=(",", ":"))
            document["plan_sha256"] = hashlib.sha256(text.encode()).hexdigest()

        self.edit("privacy.json", consistently)

    def rewrite_text(self, change: Callable[[list[str]], list[str]]) -> None:
        """Edit the lines of the CSV table."""
        path = self.bundle / "data/synthetic.csv"
        path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")
        self.relist()

    def findings(self) -> str:
        """Verify, expecting a refusal; give its words."""
        with pytest.raises(VerificationError) as caught:
            verify(self.bundle)
        assert caught.value.exit_code == 5
        return str(caught.value)
