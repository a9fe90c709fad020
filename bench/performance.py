"""Speed and memory of every part, each beside a limit or a peer in the same run: one JSON file.

Each part runs in a process of its own, alone, with one thread for arithmetic unless it says
otherwise; so its largest memory is its own. Figures are of processor time where several programs
may share the machine, and of the clock where several processes work.

    python bench/performance.py                      # all parts, into bench/performance.json
    python bench/performance.py --quick              # smaller tables, minutes
    python bench/performance.py --only sampling step # these, in the place of their old figures

`performance_page.py` puts the figures into docs/performance.md.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse  # noqa: E402
import json  # noqa: E402
import platform  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from dataclasses import asdict  # noqa: E402
from pathlib import Path  # noqa: E402

from performance_parts import PARTS  # noqa: E402

HERE = Path(__file__).parent
RESULTS = HERE / "performance.json"


def measured(part: str, quick: bool) -> dict[str, object]:
    """Return the document of a part; its figures were made in a process of its own."""
    command = [sys.executable, str(HERE / "performance.py"), "--part", part]
    begun = time.perf_counter()
    done = subprocess.run(
        command + (["--quick"] if quick else []), check=True, stdout=subprocess.PIPE, text=True
    )
    figures = json.loads(done.stdout.splitlines()[-1])
    return {"quick": quick, "seconds": time.perf_counter() - begun, "figures": figures}


def main() -> None:
    """Measure, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="smaller tables, in minutes")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.part:
        found = [asdict(one) | {"ratio": one.ratio} for one in PARTS[chosen.part](chosen.quick)]
        print(json.dumps(found))
        return
    document = json.loads(chosen.output.read_text()) if chosen.output.exists() else {"parts": {}}
    document["machine"] = (
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    )
    for part in chosen.only:
        document["parts"][part] = measured(part, chosen.quick)
        for one in document["parts"][part]["figures"]:
            print(
                f"{part}: {one['what']}: {one['value']:.3g} {one['unit']} "
                f"({one['ratio']:.2f} of {one['beside']}: {one['other']:.3g})",
                flush=True,
            )
        chosen.output.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
