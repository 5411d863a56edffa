"""dlt's own way: python -m benchmarks.dlt_connectorx URL OUT."""

import sys

import dlt
from dlt.sources.sql_database import sql_table


def main() -> None:
    url, out = sys.argv[1:3]
    pipeline = dlt.pipeline(
        "refill_bench",
        pipelines_dir=f"{out}/state",
        destination=dlt.destinations.filesystem(bucket_url=f"file://{out}/data"),
        dataset_name="bench",
    )
    table = sql_table(
        url.replace("postgresql://", "postgresql+psycopg://"),
        table="orders",
        backend="connectorx",
        reflection_level="full_with_precision",
        backend_kwargs={"return_type": "arrow_stream", "conn": url},
    )
    pipeline.run(table, loader_file_format="parquet", write_disposition="replace")


if __name__ == "__main__":
    main()
