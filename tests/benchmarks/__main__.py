"""`python -m tests.benchmarks NAME [OPTIONS]`: run one benchmark; the last line printed is one flat JSON object."""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys

import tests.benchmarks


def main(arguments: list[str]) -> int:
    names = sorted(
        module.name.replace("_", "-")
        for module in pkgutil.iter_modules(tests.benchmarks.__path__)
        if not module.name.startswith("_")
    )
    if not arguments or arguments[0] not in names:
        print(f"usage: python -m tests.benchmarks NAME [OPTIONS]\nNAME is one of: {', '.join(names)}")
        return 2
    module = importlib.import_module(f"tests.benchmarks.{arguments[0].replace('-', '_')}")
    figures = module.main(arguments[1:])
    print(json.dumps(figures), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
