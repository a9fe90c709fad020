"""Write the promised documents anew; read the difference before you commit it.

python tests/promises/renew.py            # commands, exit codes and Python names
python tests/promises/renew.py FOLDER     # and the JSON documents that `make test` met, where
                                          # DPSYNTH_RENEW_PROMISES named the folder
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))


def main() -> None:
    """Write what differs."""
    from tests.support import promised_documents as documents
    from tests.support.promised_pages import PAGES
    from tests.support.shapes import shape_of

    for name, page in PAGES.items():
        (HERE / name).write_text(page())
    if sys.argv[1:]:
        seen: dict[str, list[Any]] = defaultdict(list)
        for file in sorted(Path(sys.argv[1]).glob("*.jsonl")):
            for line in file.read_text().splitlines():
                document = json.loads(line)
                seen[document["kind"]].append(document)
        shapes = {kind: shape_of(found, documents.MAPS) for kind, found in seen.items()}
        documents.PAGE.write_text(documents.written(shapes))


if __name__ == "__main__":
    main()
