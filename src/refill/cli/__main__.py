"""`python -m refill.cli`: how the server starts its worker, whatever is on the PATH."""

from refill.cli import main

main()
