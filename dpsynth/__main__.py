"""``python -m dpsynth``: the command line."""

from dpsynth.cli import main

main()
