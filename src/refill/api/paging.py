"""How a caller asks for a page of a list, in both dialects."""

from typing import Annotated

from fastapi import Query

Limit = Annotated[int | None, Query(ge=1, le=1000, description="how many at most")]
Cursor = Annotated[
    str | None, Query(max_length=500, description="`next_cursor` of the page before")
]
