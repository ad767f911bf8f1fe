"""Functions that refer to modules of the user's: what of a module they use counts, and what importing it does."""

from __future__ import annotations

import pytest

from flinkmagic.functions.purity import impurity

USES = "import fm_helper\nf = lambda x: fm_helper.g(x)\n"

REFERRED = {
    "itself": "from fm_helper import g as f\n",
    "module": USES,
    "global": "from fm_helper import g\nf = lambda x: g(x)\n",
    "inside": "def f(x):\n    import fm_helper as h\n    return h.g(x)\n",
    "from inside": "def f(x):\n    from fm_helper import g\n    return g(x)\n",
    "class": "from fm_helper import C\nf = lambda x: C().m(x)\n",
    "instance": "from fm_helper import C\nc = C()\nf = lambda x: c.m(x)\n",
    "method": "from fm_helper import C\nf = C().m\n",
}

HELPER = """\
import random

class C:
    def m(self, x):
        return {0}

def g(x):
    return {0}

def other(x):
    return random.random()
"""


@pytest.mark.parametrize("source", REFERRED.values(), ids=REFERRED)
def test_what_a_module_does_counts_however_it_is_referred_to(modules, why, source):
    modules(fm_helper=HELPER.format("x + 1"))
    assert why(source) is None
    modules(fm_helper=HELPER.format("random.random()"))
    assert "random.random" in why(source)


def test_a_module_is_judged_again_when_it_was_edited(modules, why):
    """By the file: the pickle is the same."""
    modules(fm_helper="def g(x):\n    return x\n")
    assert why(USES) is None
    modules(fm_helper="def g(x):\n    return open(x)\n")
    assert "the module fm_helper, line 1: it names open" in why(USES)


def test_what_a_worker_does_not_run_does_not_count(modules, why):
    modules(
        fm_helper="""\
        from __future__ import annotations
        from typing import TYPE_CHECKING
        import numpy as np
        if TYPE_CHECKING:
            from pyspark.sql import SparkSession

        LIMIT = np.sqrt(9)
        __all__ = ["g"]

        def load(spark: SparkSession, path: str):
            return spark.read.parquet(path), open(path)

        def g(x):
            return x + LIMIT

        if __name__ == "__main__":
            print(load(None, "a"))
        """
    )
    assert why(USES) is None


@pytest.mark.parametrize(
    "source",
    [
        "from pathlib import Path\nTEXT = Path(__file__).read_text()\ndef g(x):\n    return x + TEXT\n",
        "import time\nSTART = time.time()\ndef g(x):\n    return x\n",
        "import os\ndef h():\n    return os.getcwd()\nTEXT = h()\ndef g(x):\n    return x\n",
        "import pandas as pd\ndef g(x):\n    return x, pd.Timestamp('now')\n",
        "import os\nfor name in ['a']:\n    os.path.exists(name)\ndef g(x):\n    return x\n",
        "from random import *\ndef g(x):\n    return choice(x)\n",
        "try:\n    import fm_none as m\nexcept ImportError:\n    import random as m\n"
        "def g(x):\n    return m.random()\n",
        "import random\ndef noisy(h):\n    return lambda x: h(x) + random.random()\n@noisy\ndef g(x):\n    return x\n",
        "def h(x, at=open):\n    return at(x)\ndef g(x):\n    return h(x)\n",
        "counted = 0\ndef g(x):\n    global counted\n    counted += 1\n    return counted\n",
    ],
    ids=["text", "clock", "call at the top", "now", "loop", "star", "either import", "decorator", "default", "global"],
)
def test_what_a_module_may_see_counts(modules, why, source):
    modules(fm_helper=source)
    assert why(USES) is not None


def test_modules_are_followed_into_modules(modules, why):
    modules(
        fm_package____init__="",
        fm_package__one="from . import two\nfrom .two import *\n"
        "def g(x):\n    from .three import h\n    return two.h(x) + h(x) + k(x)\n",
        fm_package__two="def h(x):\n    return x\ndef k(x):\n    return x\n",
        fm_package__three="def h(x):\n    return x\n",
    )
    source = "from fm_package import one\nf = lambda x: one.g(x)\n"
    assert why(source) is None
    modules(fm_package__three="def h(x):\n    return open(x)\n")
    assert "fm_package.three, line 1" in why(source)
    modules(fm_package__three="def h(x):\n    return x\n")
    modules(fm_package____init__="import os\nHOME = os.environ['HOME']\n")
    assert "the module fm_package, line 2" in why(source)


def test_a_module_that_cannot_be_read_is_not_known_to_be_pure(modules, why, tmp_path):
    modules(fm_helper="def g(x):\n    return x\n")
    pickled = why(USES)
    assert pickled is None
    modules(fm_helper="def g(x)\n")
    assert "cannot be parsed" in why("\n" + USES)
    (tmp_path / "fm_helper.py").unlink()
    assert "fm_helper" in why("\n\n" + USES)


def test_names_of_main_were_shipped_or_are_not_there():
    assert "__main__" in impurity(b"\x80\x05c__main__\nf\n.")
