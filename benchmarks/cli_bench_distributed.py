"""``topksvm bench distributed``: what shards and a Dask cluster cost."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.cli_data_of_bench import silhouettes
from topksvm.cli._errors import UserError
from topksvm.cli._info import describe
from topksvm.cli._output import end_progress, print_table, report_progress


def add_parser(subjects: Any) -> None:
    """Add the subject to the parser of ``topksvm bench``."""
    parser: argparse.ArgumentParser = subjects.add_parser(
        "distributed",
        help="rounds and bytes against the number of shards; Dask against one process",
        description=(
            "Rounds of communication and bytes to a relative gap of 1e-3 for 1 to 32 shards, in a "
            "simulation; then two worker processes of Dask against the solver in this process with "
            "two threads. Needs topksvm[dask]."
        ),
    )
    parser.add_argument("--quick", action="store_true", help="up to 4 shards")
    parser.add_argument(
        "--silhouettes", type=Path, metavar="FILE", help="as for the solver's benchmark"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    X, y, C = silhouettes(options.silhouettes)
    report_progress("distributed: shards, then a cluster")
    try:
        from benchmarks.distributed_speed import SHARDS, measure_distributed

        shards = [K for K in SHARDS if K <= 4] if options.quick else SHARDS
        rows = measure_distributed(X.astype("float32"), y, C, shards=shards)
    except ImportError as error:
        raise UserError(str(error)) from error
    end_progress()
    if options.json:
        print(json.dumps({"machine": describe(), "rows": [vars(row) for row in rows]}, indent=2))
        return
    print(
        f"To a relative gap of 1e-3, n, d, m = {(*X.shape, int(y.max()) + 1)}, k = 5, C = {C:g}\n"
    )
    print_table(
        ["method", "shards", "rounds", "passes", "MB", "seconds", "of them idle", "gap"],
        [
            [
                row.method,
                str(row.n_shards),
                str(row.rounds),
                str(row.passes),
                f"{row.n_bytes / 1e6:.1f}",
                "" if row.method == "simulation" else f"{row.seconds:.2f}",
                "" if row.method != "dask" else f"{row.communication:.2f}",
                f"{row.relative_gap:.1e}",
            ]
            for row in rows
        ],
    )
