"""The batches of one slice on their way from source to sink: counted, filtered, held back."""

import time
from collections.abc import Callable, Iterator

import pyarrow as pa

from refill.packs.filter import Filter
from refill.packs.row_limit import RowLimit


class Throttle:
    """Lets at most so many rows a second pass, over all slices of a pack."""

    def __init__(
        self,
        rows_per_second: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.rows_per_second = rows_per_second
        self._clock = clock
        self._sleep = sleep
        self._free_at = clock()

    def split(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Pieces of half a second each, so that the rows flow instead of coming in bursts."""
        step = max(1, self.rows_per_second // 2)
        for offset in range(0, batch.num_rows, step):
            piece = batch.slice(offset, step)
            now = self._clock()
            if self._free_at > now:
                self._sleep(self._free_at - now)
            self._free_at = max(now, self._free_at) + piece.num_rows / self.rows_per_second
            yield piece


class Flow:
    """Wraps what a source yields; knows afterwards how many rows were read and dropped."""

    def __init__(
        self,
        batches: Iterator[pa.RecordBatch],
        *,
        keep: Filter | None = None,
        throttle: Throttle | None = None,
        limit: RowLimit | None = None,
        on_batch: Callable[[int], None] | None = None,
        check: Callable[[], None] = lambda: None,  # raises once nobody wants the rows any more
    ) -> None:
        self._batches = batches
        self._keep = keep
        self._throttle = throttle
        self._limit = limit
        self._on_batch = on_batch
        self._check = check
        self.rows_read = 0
        self.rows_filtered = 0
        self.ended = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(self._batches):
            if self._on_batch is not None:
                self._on_batch(number)
            pieces = [batch] if self._throttle is None else self._throttle.split(batch)
            for piece in pieces:
                self._check()
                yield from self._kept(piece)
        # a source that was closed under the reading may look as if it had come to its end
        self._check()
        self.ended = True

    def _kept(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        self.rows_read += batch.num_rows
        if self._keep is not None:
            kept = self._keep.apply(batch)
            self.rows_filtered += batch.num_rows - kept.num_rows
            batch = kept
        if self._limit is not None:
            batch = self._limit.apply(batch)
        if batch.num_rows:
            yield batch
