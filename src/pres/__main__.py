"""``python -m pres``: the command line."""

from pres.cli import main

main()
