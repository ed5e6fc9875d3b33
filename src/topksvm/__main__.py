"""``python -m topksvm``."""

import sys

from topksvm.cli import main

sys.exit(main())
