"""`python -m pue` is the command `pue`."""

from pue.cli import main

if __name__ == "__main__":
    main()
