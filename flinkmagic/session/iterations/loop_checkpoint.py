"""Records a loop's progress on disk, so that another process can go on from its last superstep (``--checkpoint-dir``).

The rows of each superstep are written as parquet, and recorded in a file that atomically replaces the one before. A
loop of the same name takes them up if its first superstep would have the same rows: the key is that superstep's. A loop
without a key (its rows differ each time, or its functions are not known to be pure) begins again. When a loop has
ended, its files are deleted.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from flinkmagic.reuse.result_keys import ResultKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from flinkmagic.reuse.result_keys import NoKey

_RECORD = "superstep.json"


class LoopCheckpoint:
    """Records the last superstep of a loop, in a folder of its own.

    Parameters
    ----------
    folder : str
        One path for driver and executors.
    key : ResultKey or NoKey
        Of the first superstep.
    """

    def __init__(self, folder: str, name: str, key: ResultKey | NoKey) -> None:
        self._folder = Path(folder) / f"loop-{hashlib.sha256(name.encode()).hexdigest()[:24]}"
        self._key = key.digest if isinstance(key, ResultKey) and key.portable else None

    def find(self, spark: SparkSession, columns: StructType) -> tuple[int, DataFrame] | None:
        """Return the number and the rows of the last superstep that a former process has recorded."""
        try:
            record = json.loads((self._folder / _RECORD).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        rows = self._folder / record["rows"]
        if self._key is None or record["key"] != self._key or not (rows / "_SUCCESS").exists():
            return None
        schema = StructType.fromJson(record["schema"])
        return record["number"], spark.read.schema(schema).parquet(str(rows)).toDF(*columns.names)

    def write(self, number: int, frame: DataFrame) -> None:
        """Write and record the rows of a superstep, then delete those of earlier ones."""
        if self._key is None:
            return
        # Unique names that parquet can write, whatever the user's are.
        rows = frame.toDF(*(f"c{position}" for position in range(len(frame.columns))))
        place = f"{number}.parquet"
        rows.write.mode("overwrite").parquet(str(self._folder / place))
        record = {"number": number, "key": self._key, "rows": place, "schema": rows.schema.jsonValue()}
        draft = self._folder / f"{_RECORD}.draft"
        draft.write_text(json.dumps(record), encoding="utf-8")
        os.replace(draft, self._folder / _RECORD)
        for other in self._folder.glob("*.parquet"):
            if other.name != place:
                shutil.rmtree(other)

    def close(self) -> None:
        """Delete what is recorded: the loop has ended."""
        if self._folder.exists():
            shutil.rmtree(self._folder)
