"""Look for certificates, interrupts, checkpoints and files that go wrong, for minutes or hours.

    python tools/fuzz.py --seconds 600

- exact: hostile tiny problems; certificates are judged in exact arithmetic (tests/exact).
- interrupts: Ctrl-C, once or several times, at random moments of fits of every kind.
- kills: streamed fits with a checkpoint, killed and resumed; the model must be the same.
- flips: single bits of model files and checkpoints flipped; each must be noticed, or not matter.

The exit code is 1 if anything failed; the same seed tries the same things again.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from fuzzing import exact, flips, interrupts, kills

KINDS = {"exact": (exact, 0.72), "interrupts": (interrupts, 0.14), "kills": (kills, 0.09)}
KINDS["flips"] = (flips, 0.05)
COLUMNS = ("tried", "refused", "failures")


def main() -> int:
    """Run the kinds one after the other, print a table; 1 if there were failures."""
    options = parse()
    print(f"seed {options.seed}", flush=True)
    chosen = {options.only: 1.0} if options.only else {name: s for name, (_, s) in KINDS.items()}
    counts = {}
    for name, share in chosen.items():
        end = time.monotonic() + share * options.seconds
        counts[name] = KINDS[name][0].run(options.seed, end, options.jobs, tell(name))
    print_table(counts)
    return int(any(count["failures"] for count in counts.values()))


def parse() -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600, help="how long, 600 by default")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="random")
    parser.add_argument("--only", choices=KINDS, help="one kind instead of all")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes, 2 by default")
    return parser.parse_args()


def tell(name: str, limit: int = 30):
    """Return a function that prints a failure, unless there were many."""
    told = Counter()

    def say(text: str) -> None:
        told["all"] += 1
        if told["all"] <= limit:
            print(f"{name}: {text}", flush=True)

    return say


def print_table(counts: dict[str, Counter]) -> None:
    """Print what was tried."""
    print("".join([f"\n{'what':<12}", *(f"{column:>10}" for column in COLUMNS)]))
    for name, count in counts.items():
        print("".join([f"{name:<12}", *(f"{count[column]:>10,}" for column in COLUMNS)]))


if __name__ == "__main__":
    sys.exit(main())
