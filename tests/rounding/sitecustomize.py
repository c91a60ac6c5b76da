"""Python imports this file by itself where its folder is on PYTHONPATH:
in notebooks' kernels and in workers, too.

With IBUKIT_ROUNDING_NOISE set to a whole number, that seed's noise is in the package as soon as it
is imported.
"""

import importlib.util
import os
import sys


class _AfterImport:
    def __init__(self, seed):
        self.seed = seed

    def find_spec(self, name, path=None, target=None):
        if name != "ibukit":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def run_and_install(module):
            run(module)
            from rounding_noise import install

            install(self.seed)

        spec.loader.exec_module = run_and_install
        return spec


if seed := os.environ.get("IBUKIT_ROUNDING_NOISE"):
    sys.meta_path.insert(0, _AfterImport(int(seed)))
