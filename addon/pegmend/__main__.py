"""`python -m pegmend`."""

import sys

from pegmend.cli import main

sys.exit(main())
