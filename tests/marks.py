"""What a test needs of the machine, told by the fixtures that it asks for."""

import pytest

# by fixture; a test that gets one of them later, by name, is marked where it is made
NEEDS = {
    "postgres": "postgres",
    "postgres_url": "postgres",
    "spark_engine": "spark",
    "kafka": "server",
    "nats_server": "server",
    "rabbitmq": "server",
    "redis_server": "server",
}


def mark_needs(items: list[pytest.Item]) -> None:
    for item in items:
        for fixture in getattr(item, "fixturenames", ()):
            if fixture in NEEDS:
                item.add_marker(NEEDS[fixture])
