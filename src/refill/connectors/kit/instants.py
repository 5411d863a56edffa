"""Instants that 64 bits of microseconds since 1970 cannot hold, in a column of such microseconds.

PostgreSQL counts from 2000 and so reaches thirty years further than Arrow does, to the end of the
year 294276. Those years are kept where no source has a date at all: far before PostgreSQL's first
day. Like the two infinities they are code points that a sink knows, or refuses; as dates they would
be wrong.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute

pc: Any = pyarrow.compute  # its stubs know fewer forms of these functions than it has

FAR_FIRST = -(2**62)  # stands for 2^63 - 1, the first that is not held: that one is infinity
FAR_LAST = FAR_FIRST + 30 * 366 * 86_400_000_000


def is_far(instants: Any) -> Any | None:
    """Which of a column of int64 are code points; None: none of them, by one look."""
    ends = pc.min_max(instants).as_py()
    # the least may be minus infinity, which says nothing of the others
    if ends["min"] is None or ends["min"] > FAR_LAST:
        return None
    found = pc.and_(
        pc.greater_equal(instants, pa.scalar(FAR_FIRST, pa.int64())),
        pc.less_equal(instants, pa.scalar(FAR_LAST, pa.int64())),
    )
    return found if pc.any(found).as_py() else None


def far_rows(batch: pa.RecordBatch) -> Any | None:
    """Which rows of a batch have such an instant in any of their columns; None: no row."""
    rows: Any = None
    for column in batch.columns:
        if not pa.types.is_timestamp(column.type) or column.type.unit != "us":
            continue
        found = is_far(column.view(pa.int64()))
        if found is not None:
            found = pc.fill_null(found, False)
            rows = found if rows is None else pc.or_(rows, found)
    return rows
