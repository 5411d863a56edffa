"""The command `refill`: one file per noun. Nothing heavy is imported before a command runs."""

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> None:
    """Exit codes: 0 done, 1 error, 2 cancelled, 3 finished with failed dates, 4 not allowed."""
    from refill.cli.root import run

    sys.exit(run(argv))
