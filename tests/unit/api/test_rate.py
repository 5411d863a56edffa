"""The allowance of a key."""

from datetime import UTC, datetime, timedelta

from refill.api.rate import RateLimiter

NOON = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def test_it_counts_down_and_then_says_when_to_come_back() -> None:
    limiter = RateLimiter(2)
    assert [limiter.take("1", NOON).remaining for _ in range(2)] == [1, 0]
    refused = limiter.take("1", NOON + timedelta(minutes=59, seconds=59))
    assert refused.retry_after_seconds == 1


def test_keys_do_not_share() -> None:
    limiter = RateLimiter(1)
    limiter.take("1", NOON)
    assert limiter.take("2", NOON).retry_after_seconds is None


def test_the_next_hour_begins_anew() -> None:
    limiter = RateLimiter(1)
    limiter.take("1", NOON)
    assert limiter.take("1", NOON).retry_after_seconds == 3600
    assert limiter.take("1", NOON + timedelta(hours=1)).remaining == 0


def test_no_limit_is_never_used_up() -> None:
    limiter = RateLimiter(0)
    for _ in range(3):
        allowance = limiter.take("1", NOON)
        assert allowance.retry_after_seconds is None
        assert (allowance.limit, allowance.remaining) == (10_000, 10_000)
