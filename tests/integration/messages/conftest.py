from tests.integration.postgres_source.conftest import bed, with_contrib  # noqa: F401
from tests.spark import spark_engine  # noqa: F401
