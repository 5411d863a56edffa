from tests.integration.postgres_source.conftest import bed, with_contrib  # noqa: F401
