"""Run the command line: ``python -m tuner``."""

import sys

try:
    from tuner.cli import main
except KeyboardInterrupt:  # an impatient Ctrl-C while Python still loads the package
    sys.exit(130)

main()
