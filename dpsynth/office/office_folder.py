"""What both roles share: the folder, how a page is shown, and how a stale form is met."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData
from starlette.responses import HTMLResponse, RedirectResponse, Response

from dpsynth.errors import SPACES, InputError, printable
from dpsynth.office.rendering import render
from dpsynth.office.server import Gate
from dpsynth.office.written_yaml import WrittenYaml, at
from dpsynth.workflow.settings import FILE

STALE = (
    "The file was changed since this page was shown, in another tab or in an editor. Nothing was "
    "written. Compare what you entered with what the file says now, and save again."
)
ENDINGS = (".schema.yaml", ".package.yaml")


@dataclass(frozen=True)
class OfficeFolder:
    """One role at work on a folder.

    Attributes:
        folder: of the schema and the settings.
        gate: who may ask.
        role: ``prepare`` or ``run``.
        steps: address and name of each page, in their order.
    """

    folder: Path
    gate: Gate
    role: str
    steps: tuple[tuple[str, str], ...]

    def show(
        self, template: str, here: str, *, status: int = 200, policy: str = "", **values: Any
    ) -> Response:
        """Show a page.

        Args:
            template: of it.
            here: its address, of the steps.
            status: of the answer.
            policy: what a browser may do, where that is another than usual.
            values: what the template takes.
        """
        page = render(
            template,
            role=self.role,
            folder=self.folder.name,
            steps=self.steps,
            here=here,
            sign=self.gate.sign,
            **values,
        )
        return HTMLResponse(page, status, {"content-security-policy": policy} if policy else None)

    def schema_path(self) -> Path | None:
        """Return the schema of the folder; None if there is none yet.

        Raises:
            InputError: there are several, and the settings name none of them.
        """
        found = sorted(
            path
            for path in self.folder.iterdir()
            if path.name.endswith(ENDINGS) and not path.name.startswith(".")
        )
        named = at(self.settings().document, ("schema",))
        for path in found:
            if path.name == named:
                return path
        if len(found) > 1:
            names = ", ".join(path.name for path in found)
            raise InputError(
                f"the folder has {len(found)} schemas: {names}. Keep one of them there, or name it "
                f"in {FILE}, as schema: NAME"
            )
        return found[0] if found else None

    def settings(self) -> WrittenYaml:
        """Read the settings of the run; empty if there are none yet."""
        return WrittenYaml.read(self.folder / FILE)

    def typed(self, form: FormData, name: str) -> str:
        """Return what stands in a field of a form, which is one line.

        Raises:
            InputError: it has a character that no line has.
        """
        value = form.get(name, "")
        text = value.strip() if isinstance(value, str) else ""
        if printable(text, SPACES) != text:
            raise InputError(f"the field {name} has a character that a line cannot have")
        return text


def to(address: str) -> Response:
    """Send the browser to a page, with a request that can be repeated."""
    return RedirectResponse(address, 303)


def command(*words: str | Path) -> str:
    """Write a command line as a shell takes it."""
    return shlex.join(str(word) for word in ("dpsynth", *words))


def items_of(error: InputError) -> Sequence[str]:
    """Return the mistakes that an error lists, or its only sentence."""
    return error.items or (str(error),)
