from tests.spark import spark_engine

__all__ = ["spark_engine"]
