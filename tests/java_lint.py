"""Checks the Java sources with javac, against the jars of the PySpark that runs this: `python tests/java_lint.py`.

Spark's own Janino compiles them when they are needed, and tells less: it infers no types and warns of nothing. What
javac says of raw types is left out: most come from Scala's signatures, which Janino does not read, so that the casts
which javac then finds redundant are needed, too; and what it misses of the jars' own annotations. Two files are not
whole before they are compiled: ``SessionQuery`` is filled with the arguments of the running Spark, and
``PythonWorkerWatch`` is the body of a class.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

SOURCES = Path(__file__).parents[1] / "flinkmagic"
NOT_WHOLE = ("SessionQuery", "PythonWorkerWatch")
LINT = "all,-path,-classfile,-rawtypes,-unchecked,-cast,-deprecation"


def main() -> int:
    """Return 0 if javac has nothing to say."""
    sources = [str(path) for path in sorted(SOURCES.rglob("*.java")) if path.stem not in NOT_WHOLE]
    jars = Path(pyspark.__file__).with_name("jars") / "*"
    with tempfile.TemporaryDirectory() as classes:
        options = ["-proc:none", f"-Xlint:{LINT}", "-Werror", "-Xmaxerrs", "1000", "-d", classes, "-cp", str(jars)]
        done = subprocess.run(["javac", *options, *sources], check=False)
    print(f"{len(sources)} Java files with PySpark {pyspark.__version__}: {'wrong' if done.returncode else 'right'}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
