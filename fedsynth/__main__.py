"""`python -m fedsynth` is `fedsynth`, where nobody put a script on the path."""

from fedsynth.cli import main

main()
