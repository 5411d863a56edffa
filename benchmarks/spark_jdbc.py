"""A plain PySpark script, as one would write it: python -m benchmarks.spark_jdbc KIND URL ROWS OUT.

Warm: the first pass in the session is not counted, the second is what the caller reads.
"""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.measure import busy_seconds
from benchmarks.source import CACHE


def driver_jar() -> Path | None:
    """Debian's, or the one that Maven brings into the cache."""
    debian = Path("/usr/share/java/postgresql.jar")
    if debian.exists():
        return debian
    cached = CACHE / "jdbc"
    if not list(cached.glob("postgresql-*.jar")) and shutil.which("mvn"):
        subprocess.run(
            [
                *("mvn", "-q", "dependency:copy", "-Dartifact=org.postgresql:postgresql:42.7.7"),
                f"-DoutputDirectory={cached}",
            ],
            check=False,
            capture_output=True,
        )
    return next(cached.glob("postgresql-*.jar"), None)


def main() -> None:
    kind, url, rows, out = sys.argv[1:5]
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import struct, to_json

    parts = urlsplit(url)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", str(driver_jar()))
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    for number in range(2):
        cpu, began = busy_seconds(), time.perf_counter()
        frame = (
            spark.read.format("jdbc")
            .option("url", f"jdbc:postgresql://{parts.hostname}:{parts.port}{parts.path}")
            .option("user", parts.username or "")
            .option("password", parts.password or "")
            .option("driver", "org.postgresql.Driver")
            .option("dbtable", "orders")
            .option("partitionColumn", "id")
            .option("lowerBound", "1")
            .option("upperBound", rows)
            .option("numPartitions", "8")
            .load()
        )
        if kind == "json":
            frame = frame.select(to_json(struct("*")).alias("value"))
            frame.write.mode("overwrite").text(f"{out}/{number}")
        else:
            frame.write.mode("overwrite").parquet(f"{out}/{number}")
        seconds = time.perf_counter() - began
        cpu = busy_seconds() - cpu
    Path(out, "pass.json").write_text(json.dumps({"seconds": seconds, "cpu_seconds": cpu}))
    spark.stop()


if __name__ == "__main__":
    main()
