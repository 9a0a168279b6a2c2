"""`python -m nvlab`: the command."""

from ._command import main

main()
