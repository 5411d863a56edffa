"""Logging in to AWS's Kafka: the token that librdkafka is given."""

import base64
import time
from urllib.parse import parse_qs, urlsplit

from refill.connectors.kafka import KafkaOptions
from refill.connectors.kafka.aws import token_signer
from refill.connectors.kafka.cluster import Cluster

OPTIONS = KafkaOptions(
    hosts="b-1.example:9098",
    topic="orders",
    tls=True,
    sasl_mechanism="aws_msk_iam",
    aws_region="eu-west-1",
    aws_access_key_id="AKIAEXAMPLE",
    aws_secret_access_key="hush-hush",
)


def test_the_token_is_an_address_signed_for_the_region() -> None:
    token, ends = token_signer(OPTIONS)("")
    address = urlsplit(base64.urlsafe_b64decode(token + "==").decode())
    asked = {name: values[0] for name, values in parse_qs(address.query).items()}
    assert address.hostname == "kafka.eu-west-1.amazonaws.com"
    assert asked["Action"] == "kafka-cluster:Connect"
    assert asked["X-Amz-Credential"].startswith("AKIAEXAMPLE/")
    assert "/eu-west-1/kafka-cluster/" in asked["X-Amz-Credential"]
    assert len(asked["X-Amz-Signature"]) == 64
    assert 60 < ends - time.time() <= 900


def test_the_clients_log_in_with_it() -> None:
    settings = Cluster(OPTIONS).settings()
    assert settings["security.protocol"] == "SASL_SSL"
    assert settings["sasl.mechanism"] == "OAUTHBEARER"
    assert callable(settings["oauth_cb"])
    assert "sasl.password" not in settings
