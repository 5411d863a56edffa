"""AWS's own login to its Kafka: a signed address as an OAuth token of 15 minutes."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from refill.connectors.kafka import KafkaOptions
from refill.domain.errors import Misconfigured


def signed_settings(options: KafkaOptions) -> dict[str, Any]:
    """What a client logs in with; Misconfigured where the signer is not installed."""
    if find_spec("aws_msk_iam_sasl_signer") is None:
        raise Misconfigured(
            "AWS-MSK-IAM needs the package 'aws-msk-iam-sasl-signer-python', which is not "
            "installed; install it with: pip install 'refill-backfills[msk]'"
        )
    return {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": token_signer(options)}


def token_signer(options: KafkaOptions) -> Callable[[str], tuple[str, float]]:
    """What librdkafka calls for a token: (token, when it ends in seconds since 1970)."""
    region, key = options.aws_region or "", options.aws_access_key_id
    secret = options.aws_secret_access_key
    plain = secret.get_secret_value() if secret else ""

    def sign(_: str) -> tuple[str, float]:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
        from botocore.credentials import CredentialProvider, Credentials

        class Given(CredentialProvider):  # type: ignore[misc]
            def load(self) -> Any:
                return Credentials(key, plain)

        token, milliseconds = MSKAuthTokenProvider.generate_auth_token_from_credentials_provider(
            region, Given()
        )
        return token, milliseconds / 1000

    return sign
