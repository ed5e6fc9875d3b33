"""What it was measured on: the machine, the commit, versions, commands."""

from __future__ import annotations

import datetime
import json
import os
import platform
import shlex
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import topksvm
from benchmarks.solvers import SOLVERS


def facts(line: list[str]) -> dict[str, Any]:
    """Return the facts of this machine, and the command with the options `line`."""
    packages = ["numpy", "scipy", "scikit-learn", "numba", "threadpoolctl"]
    packages += [solver.package for solver in SOLVERS.values()]
    versions = {name: _version(name) for name in dict.fromkeys(packages)}
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "processor": _processor(),
        "processors": os.cpu_count(),
        "memory": _memory(),
        "platform": f"{platform.system()} {platform.machine()}",
        "load": round(os.getloadavg()[0], 1),
        "commit": commit(),
        "versions": {"python": platform.python_version()} | versions,
        "commands": [command_of(line)],
    }


def in_words(facts: dict[str, Any]) -> str:
    """Return the facts as text, without the commands."""
    versions = ", ".join(f"{name} {value}" for name, value in facts["versions"].items())
    return (
        f"Measured on {facts['date']}: {facts['processor']}, {facts['processors']} processors, "
        f"{facts['memory']} of memory, {facts['platform']}, load {facts['load']}. "
        f"Commit {facts['commit']}. "
        f"Versions: {versions}."
    )


def record(folder: Path, line: list[str]) -> None:
    """Write the facts to ``machine.json`` in `folder`, with the commands from before."""
    path = folder / "machine.json"
    before = json.loads(path.read_text())["commands"] if path.is_file() else []
    found = facts(line)
    found["commands"] = list(dict.fromkeys([*before, *found["commands"]]))
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=2) + "\n")


def command_of(line: list[str]) -> str:
    """Return the command as others would type it; where files are kept is left out."""
    words = [Path(word).name if Path(word).is_absolute() else word for word in line]
    return shlex.join(["python", "-m", "benchmarks", *words])


def commit() -> str:
    """Return the commit that topksvm is imported from, marked if files have changed since."""
    folder = str(Path(topksvm.__file__).parent)
    command = ["git", "-C", folder, "describe", "--always", "--dirty", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()


def _memory() -> str:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return "unknown"
    return f"{size / 2**30:.0f} GiB"
