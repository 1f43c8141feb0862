"""The command line: `main` is the command `pres`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit: 0, 1 after an error, 2 after a usage error, 130 after Ctrl-C."""
    try:
        from pres.cli.commands import run  # takes a while, in which Ctrl-C may come already

        code = run(sys.argv[1:])
    except KeyboardInterrupt as stopped:
        sys.stderr.write(f"{str(stopped) or 'stopped.'}\n")
        code = 130
    sys.exit(code)
