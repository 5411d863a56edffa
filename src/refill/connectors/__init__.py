"""The systems that refill knows, one folder or file each; `kit` is what they are made with."""

# type → where its connector is; packages of others add theirs by entry points (kit/registry.py)
BUILT_IN = {
    "files": "refill.connectors.files:CONNECTOR",
    "kafka": "refill.connectors.kafka:CONNECTOR",
    "nats": "refill.connectors.nats:CONNECTOR",
    "postgres": "refill.connectors.postgres:CONNECTOR",
    "rabbitmq": "refill.connectors.rabbitmq:CONNECTOR",
    "redis_stream": "refill.connectors.redis.stream:CONNECTOR",
    "redis_string": "refill.connectors.redis.string:CONNECTOR",
    "webhook": "refill.connectors.webhook:CONNECTOR",
}
