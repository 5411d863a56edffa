"""Keys: each way to be refused has a reason of its own."""

from datetime import UTC, datetime, timedelta

import httpx
import pytest

from refill.domain.access import Role, Scope
from tests.integration.api.running import Running, answer


def refused(server: Running, authorization: str | None) -> str:
    headers = {} if authorization is None else {"Authorization": authorization}
    response = httpx.get(f"{server.url}/api/sinks", headers=headers)
    assert response.headers["WWW-Authenticate"] == "Bearer"
    summary: str = answer(response, 401)["summary"]
    return summary


def test_each_bad_key_has_a_reason_of_its_own(server: Running) -> None:
    yesterday = datetime.now(UTC) - timedelta(days=1)
    expired = server.make_token(expires_at=yesterday)
    revoked = server.make_token()
    found = server.store.find_key(revoked.split("_")[1])
    assert found is not None
    server.store.revoke_key(found[0].id)
    unknown = f"rf_{'0' * 12}_{'x' * 43}"
    reasons = [
        refused(server, None),
        refused(server, "Bearer nonsense"),
        refused(server, f"Basic {unknown}"),
        refused(server, f"Bearer {unknown}"),
        refused(server, f"Bearer {revoked}"),
        refused(server, f"Bearer {expired}"),
    ]
    assert "No API key" in reasons[0]
    assert "malformed" in reasons[1]
    assert "malformed" in reasons[2]
    assert "not known" in reasons[3]
    assert "revoked" in reasons[4]
    assert "expired" in reasons[5]


def test_a_key_with_another_secret_is_not_known(server: Running) -> None:
    token = server.make_token()
    assert "not known" in refused(server, f"Bearer {token[:-4]}AAAA")


def test_only_a_hash_of_the_token_is_stored(server: Running) -> None:
    token = server.make_token()
    found = server.store.find_key(token.split("_")[1])
    assert found is not None
    assert token not in repr(found)
    assert token.split("_", 2)[2] not in repr(found)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_is_read_in_any_case(server: Running, scheme: str) -> None:
    headers = {"Authorization": f"{scheme} {server.make_token()}"}
    assert httpx.get(f"{server.url}/api/sinks", headers=headers).status_code == 200


def test_a_write_scope_reads_too(server: Running) -> None:
    with server.client(server.make_token(Scope.SINKS_WRITE)) as api:
        assert answer(api.get("/api/sinks"), 200) == {"data": []}


def test_a_viewer_reads_and_does_not_write_whatever_the_key_allows(server: Running) -> None:
    with server.client(server.make_token(Scope.ALL, role=Role.VIEWER)) as api:
        answer(api.get("/api/sinks"), 200)
        refusal = answer(api.delete("/api/sinks/whatever"), 403)
    assert "sinks_write" in refusal["summary"]
    assert "viewer" in refusal["summary"]
