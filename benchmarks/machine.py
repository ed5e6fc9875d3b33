"""What it was measured on: the machine, versions, commands."""

from __future__ import annotations

import datetime
import json
import os
import platform
import shlex
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.solvers import SOLVERS
from topksvm._files import replacing
from topksvm.cli._info import describe


def facts() -> dict[str, Any]:
    """Return the machine and the versions of everything that took part."""
    described = describe()
    described.pop("platform")
    packages = {"threadpoolctl"} | {solver.package for solver in SOLVERS.values()}
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "processor": _processor(),
        "processors": os.cpu_count(),
        "memory": _memory(),
        "platform": f"{platform.system()} {platform.machine()}",
        "versions": {k: v for k, v in described.items() if k not in ("threads", "topksvm")}
        | {name: _version(name) for name in sorted(packages)},
    }


def record(folder: Path, arguments: list[str]) -> None:
    """Write the facts to ``machine.json`` in `folder`, and add the command to those before."""
    path = folder / "machine.json"
    commands = json.loads(path.read_text())["commands"] if path.is_file() else []
    command = command_of(arguments)
    content = facts() | {"commands": [*commands, *([command] if command not in commands else [])]}
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2) + "\n")


def command_of(arguments: list[str]) -> str:
    """Return the command as others would type it."""
    return shlex.join(["python", "-m", "benchmarks", *map(_without_place, arguments)])


def _without_place(argument: str) -> str:
    """Where somebody keeps the files is of no interest to others."""
    return Path(argument).name if Path(argument).is_absolute() else argument


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return sys.platform
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else sys.platform


def _memory() -> str:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return "unknown"
    return f"{size / 2**30:.0f} GiB"
