"""Writes to Hive's tables, plain and through a graph, in a process of its own: a JVM has one kind of catalog.

Prints a line of JSON: by write whether anything was there before the graph ran, and the rows of both tables.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable

HOME = os.getcwd()


def main() -> None:
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F

    import flinkmagic

    spark = flinkmagic.local_session(
        "hive",
        "local[2]",
        {
            "spark.sql.catalogImplementation": "hive",
            "spark.ui.enabled": "false",
            "spark.log.level": "FATAL",
            "spark.sql.warehouse.dir": f"{HOME}/warehouse",
            "hive.exec.dynamic.partition.mode": "nonstrict",
            "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:{HOME}/metastore;create=true",
        },
    )
    rows = spark.range(0, 20, 1, 3).withColumn("name", F.concat(F.lit("n"), "id")).repartition(2, "id")
    by_day = rows.withColumn("day", (F.col("id") % 3).cast("int"))
    writes: dict[str, tuple[str, Callable[[DataFrame, str], None], DataFrame]] = {
        "append": ("STORED AS TEXTFILE", lambda df, table: df.write.insertInto(table), rows),
        "overwrite": (
            "ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde'",
            lambda df, table: df.write.insertInto(table, overwrite=True), rows.limit(5),
        ),
        "partitions": (
            "PARTITIONED BY (day INT) STORED AS RCFILE", lambda df, table: df.write.insertInto(table), by_day,
        ),
        "created": ("", lambda df, table: df.write.format("hive").saveAsTable(table), rows),
    }  # fmt: skip
    told = {}
    for name, (stored, write, df) in writes.items():
        for table in (f"plain_{name}", f"ours_{name}"):
            if stored:
                spark.sql(f"CREATE TABLE {table} (id BIGINT, name STRING) {stored}")
                if "day" not in df.columns:
                    spark.sql(f"INSERT INTO {table} VALUES (100, 'old')")
        write(df, f"plain_{name}")
        with flinkmagic.capture(spark) as program:
            write(df, f"ours_{name}")
        before = spark.table(f"ours_{name}").count() if stored else spark.catalog.tableExists(f"ours_{name}")
        job = flinkmagic.compile(program, name=name).run()
        rows_of = [sorted(map(str, spark.table(f"{who}_{name}").collect())) for who in ("plain", "ours")]
        told[name] = [str(job.status), before, *rows_of]
    print(json.dumps(told))
    spark.stop()


if __name__ == "__main__":
    main()
