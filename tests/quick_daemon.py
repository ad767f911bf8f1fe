"""PySpark's daemon (`spark.python.daemon.module`) that has loaded what each of the workers that it forks would load.

Tests end hundreds of workers, by failures and by cancelling.
"""

import pandas
import pyarrow
from pyspark.daemon import manager

__all__ = ["pandas", "pyarrow"]

if __name__ == "__main__":
    manager()
