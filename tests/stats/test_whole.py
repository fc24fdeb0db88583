"""An import of scipy.stats that was interrupted once."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tuner.stats import bca_interval, compare_paired, sign_flip_p

SCRIPT = """
import sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1] and self in sys.meta_path:
            sys.meta_path.remove(self)
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
try:
    import scipy.stats
    raise SystemExit("was not interrupted")
except KeyboardInterrupt:
    pass

from tuner.stats import bca_interval, compare_paired, sign_flip_p
import numpy as np

values = np.array([0.1, 0.2, 0.4, 0.1, 0.3])
print(bca_interval(values, seed=0), sign_flip_p(values, seed=0))
print(compare_paired(values, values / 2, seed=0))
"""


@pytest.mark.parametrize("module", ["_quantile", "_mgc"])
def test_the_verdict_is_there_after_an_import_that_ended_half_way(module):
    command = [sys.executable, "-W", "error", "-c", SCRIPT, f"scipy.stats.{module}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    values = np.array([0.1, 0.2, 0.4, 0.1, 0.3])
    found = f"{bca_interval(values, seed=0)} {sign_flip_p(values, seed=0)}"
    assert done.stdout == f"{found}\n{compare_paired(values, values / 2, seed=0)}\n"
