"""The program `nexthop`: `python -m nexthop --help`."""

import sys

from nexthop._nexthop import _program


def main() -> int:
    """Runs the program with this process' arguments."""
    sys.stdout.flush()
    return _program(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
