"""``python -m ibukit``, the command line."""

import sys

from ibukit.cli import main

if __name__ == "__main__":
    sys.exit(main())
