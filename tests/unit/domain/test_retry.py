import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refill.domain.errors import EngineUnavailable, StoreBusy, Superseded
from refill.domain.retry import WORKER_LOST, RetryPolicy
from refill.domain.slice import Fault

TRANSIENT = Fault(code="sink_unavailable", message="away", transient=True)
TERMINAL = Fault(code="sink_refused", message="no", transient=False)


def test_a_terminal_fault_is_not_tried_again() -> None:
    assert RetryPolicy().delay_seconds(TERMINAL, 1, random.Random(0)) is None


def test_the_last_failure_is_not_tried_again() -> None:
    policy = RetryPolicy(max_failures=3)
    assert policy.delay_seconds(TRANSIENT, 2, random.Random(0)) is not None
    assert policy.delay_seconds(TRANSIENT, 3, random.Random(0)) is None


def test_a_pipeline_may_ask_for_another_number_of_retries() -> None:
    policy = RetryPolicy(max_failures=3)
    assert policy.limited(None) == policy
    assert policy.limited(0).delay_seconds(TRANSIENT, 1, random.Random(0)) is None
    assert policy.limited(9).delay_seconds(TRANSIENT, 9, random.Random(0)) is not None
    assert policy.limited(9).delay_seconds(TRANSIENT, 10, random.Random(0)) is None


@pytest.mark.parametrize(
    "code", [WORKER_LOST.code, StoreBusy.code, EngineUnavailable.code, Superseded.code]
)
def test_what_is_no_fault_of_the_pipeline_counts_by_the_larger_limit(code: str) -> None:
    ours = Fault(code=code, message="gone", transient=True)
    policy = RetryPolicy(max_failures=3)
    assert policy.limited(0).delay_seconds(ours, 2, random.Random(0)) is not None
    assert policy.limited(0).delay_seconds(ours, 3, random.Random(0)) is None
    assert policy.limited(9).delay_seconds(ours, 9, random.Random(0)) is not None
    assert policy.limited(9).delay_seconds(ours, 10, random.Random(0)) is None


def test_any_number_of_failures_has_a_wait() -> None:
    patient = RetryPolicy().limited(2**31 - 1)
    wait = patient.delay_seconds(TRANSIENT, 100_000, random.Random(0))
    assert wait is not None
    assert 30 <= wait <= 60


@given(failures=st.integers(1, 40), seed=st.integers())
def test_the_wait_grows_is_jittered_and_has_a_ceiling(failures: int, seed: int) -> None:
    policy = RetryPolicy(max_failures=100, base_seconds=1, cap_seconds=60)
    wait = policy.delay_seconds(TRANSIENT, failures, random.Random(seed))
    assert wait is not None
    ceiling = min(60.0, 2.0 ** (failures - 1))
    assert ceiling / 2 <= wait <= ceiling


def test_those_that_failed_together_come_back_apart() -> None:
    waits = [RetryPolicy().delay_seconds(TRANSIENT, 4, random.Random(seed)) for seed in range(99)]
    assert min(wait or 0 for wait in waits) < 4.5
    assert max(wait or 0 for wait in waits) > 7.5


def test_a_restart_of_a_minute_passes_and_five_are_not_waited_for() -> None:
    policy, rng = RetryPolicy(), random.Random(0)
    waits = [policy.delay_seconds(TRANSIENT, failures, rng) for failures in range(1, 9)]
    assert waits[-1] is None
    assert 60 < sum(wait or 0 for wait in waits) < 300


def test_what_the_other_side_asked_for_is_honoured() -> None:
    fault = TRANSIENT.model_copy(update={"retry_after_seconds": 120.0})
    assert RetryPolicy().delay_seconds(fault, 1, random.Random(0)) == 120.0


def test_nobody_is_waited_for_longer_than_an_hour() -> None:
    """Who answers with the seconds since 1970 means a moment, not a wait of fifty years."""
    fault = TRANSIENT.model_copy(update={"retry_after_seconds": 1_735_689_600.0})
    assert RetryPolicy().delay_seconds(fault, 1, random.Random(0)) == 3600.0


def test_a_fault_is_one_line_that_any_database_can_store() -> None:
    fault = Fault(code="sink_refused", message="it said: \x00N\x00o\n\x1b[31m!", transient=False)
    assert fault.message == "it said:  N o  [31m!"
