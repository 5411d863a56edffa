"""Open connections between packs."""

from refill.packs.pool import Pool


class Thing:
    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


def test_what_was_given_back_is_lent_again() -> None:
    pool = Pool()
    with pool.borrow("a", Thing) as first:
        thing = first.get()
    with pool.borrow("a", Thing) as second:
        assert second.get() is thing
    with pool.borrow("b", Thing) as other:
        assert other.get() is not thing
    pool.close()
    assert thing.closed


def test_what_may_be_broken_is_closed() -> None:
    pool = Pool()
    with pool.borrow("a", Thing) as borrowed:
        broken = borrowed.get()
        borrowed.discard()
        assert broken.closed
        assert borrowed.get() is not broken
    pool.close()


def test_two_at_once_never_share() -> None:
    pool = Pool()
    with pool.borrow("a", Thing) as one, pool.borrow("a", Thing) as two:
        assert one.get() is not two.get()
    pool.close()


def test_what_nobody_uses_is_closed_after_a_while() -> None:
    pool = Pool(idle_seconds=0.0)
    with pool.borrow("a", Thing) as borrowed:
        thing = borrowed.get()
    pool.expire()

    assert thing.closed
    pool.close()


def test_only_so_many_are_kept() -> None:
    pool = Pool(capacity=2)
    things = []
    for key in "abc":
        with pool.borrow(key, Thing) as borrowed:
            things.append(borrowed.get())

    assert [thing.closed for thing in things] == [True, False, False]
    pool.close()
