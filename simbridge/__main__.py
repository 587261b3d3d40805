"""`python -m simbridge` is the program `simbridge`."""

import sys

from simbridge.cli import main

sys.exit(main())
