from tests.spark import spark_engine  # noqa: F401
