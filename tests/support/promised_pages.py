"""What users hold on to, read off the code: commands, exit codes and Python names as text."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click

import dpsynth
from dpsynth import errors

from .command_line import every_command

ROOT = Path(__file__).parents[2]


def commands() -> str:
    """Each command with its arguments and options: names, kinds, defaults."""
    from dpsynth.cli.group import commands as top

    lines: list[str] = []
    for path, command in [((), top), *every_command(top)]:
        lines += ["", " ".join(("dpsynth", *path))]
        lines += sorted(f"  {_parameter(one)}" for one in command.params)
    return "\n".join(lines[1:]) + "\n"


def _parameter(one: click.Parameter) -> str:
    names = ", ".join([*one.opts, *(f"/ {name}" for name in one.secondary_opts)])
    parts = [names if isinstance(one, click.Option) else one.human_readable_name]
    flag = isinstance(one, click.Option) and (one.is_flag or one.count)
    parts.append("flag" if flag else _kind(one.type))
    if one.required:
        parts.append("required")
    if one.multiple if isinstance(one, click.Option) else one.nargs == -1:
        parts.append("several")
    default = one.to_info_dict().get("default")
    if isinstance(default, str | int | float) and not isinstance(default, bool):
        parts.append(f"default {default}")
    return "; ".join(parts)


def _kind(kind: click.ParamType) -> str:
    if isinstance(kind, click.Choice):
        return " | ".join(map(str, kind.choices))
    return kind.name


def exit_codes() -> str:
    """Each exit code with the errors that mean it."""
    found: dict[int, list[str]] = {}
    for name, one in vars(errors).items():
        if isinstance(one, type) and issubclass(one, errors.DpsynthError):
            found.setdefault(one.exit_code, []).append(name)
    return "".join(f"{code}  {', '.join(sorted(names))}\n" for code, names in sorted(found.items()))


def names() -> str:
    """The names of `dpsynth` and `dpsynth.errors`, with parameters and public attributes."""
    lines: list[str] = []
    for module in (dpsynth, errors):
        known = getattr(module, "__all__", None) or [
            name for name, one in vars(module).items() if _is_own(one, module.__name__)
        ]
        for name in sorted(known):
            lines += _described(f"{module.__name__}.{name}", getattr(module, name))
    return "\n".join(lines) + "\n"


def _is_own(one: object, module: str) -> bool:
    public = inspect.isclass(one) or inspect.isfunction(one)
    return public and one.__module__ == module and not one.__name__.startswith("_")


def _described(name: str, one: Any) -> Iterator[str]:
    if not callable(one):
        yield name
        return
    if not inspect.isclass(one):
        yield f"{name}({', '.join(_parameters(one))})"
        return
    own = [kind for kind in one.__mro__ if kind.__module__.partition(".")[0] == "dpsynth"]
    made = any("__init__" in vars(kind) for kind in own)
    yield f"{name}({', '.join(_parameters(one.__init__)[1:])})" if made else name
    attributes = {key: value for kind in reversed(own) for key, value in vars(kind).items()}
    attributes |= dict.fromkeys(getattr(one, "__dataclass_fields__", {}))
    for key, attribute in sorted(attributes.items()):
        if isinstance(attribute, staticmethod | classmethod):
            attribute = attribute.__func__
        if key.startswith("_"):
            continue
        if inspect.isfunction(attribute):
            yield f"  .{key}({', '.join(_parameters(attribute)[1:])})"
        else:
            yield f"  .{key}"


def _parameters(function: Callable[..., Any]) -> list[str]:
    """Return parameters as a caller writes them: those after * by name, with their defaults."""
    found: list[str] = []
    named = False
    for one in inspect.signature(function).parameters.values():
        if one.kind is one.KEYWORD_ONLY and not named:
            found.append("*")
        named = named or one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        default = getattr(one.default, "__name__", repr(one.default))
        found.append(f"{stars}{one.name}" + f"={default}" * (one.default is not one.empty))
    return found


def faces() -> str:
    """The names that each room shows to the others."""
    lines = []
    for room in ("dpsynth", "models", "eval"):
        for stub in sorted((ROOT / room).glob("*/__init__.pyi" if room == "dpsynth" else "*.pyi")):
            module = ".".join(stub.parent.relative_to(ROOT).parts)
            module = module if room == "dpsynth" else f"dpsynth.{module}"
            import_module(module)
            known = [
                name.asname or name.name
                for node in ast.parse(stub.read_text()).body
                if isinstance(node, ast.ImportFrom)
                for name in node.names
            ]
            lines += ["", module, *(f"  {name}" for name in sorted(known))]
    return "\n".join(lines[1:]) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "commands.txt": commands,
    "exit_codes.txt": exit_codes,
    "names.txt": names,
    "faces.txt": faces,
}
