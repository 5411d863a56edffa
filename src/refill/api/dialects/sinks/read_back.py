"""Fields that answers carry: a body that was read may be sent back, and they are passed over."""

from typing import Any

from pydantic import Field

from refill.api.body import Body

_PASSED_OVER = "of an answer; passed over"


class ReadBack(Body):
    id: Any = Field(None, description=_PASSED_OVER)
    inserted_at: Any = Field(None, description=_PASSED_OVER)
    updated_at: Any = Field(None, description=_PASSED_OVER)
    account_id: Any = Field(None, description="of the original's answers; passed over")


class DatabaseReadBack(ReadBack):
    tables_count: Any = Field(None, description=_PASSED_OVER)
    tables_refreshed_at: Any = Field(None, description=_PASSED_OVER)


class SinkReadBack(ReadBack):
    health: Any = Field(None, description=_PASSED_OVER)
    active_backfills: Any = Field(None, description=_PASSED_OVER)
    active_backfill: Any = Field(None, description="of the original's older answers; passed over")
    replication_slot_id: Any = Field(None, description="of the original's answers; passed over")
    sequence_id: Any = Field(None, description="of the original's answers; passed over")
    message_kind: Any = Field(None, description="of the original's older files; passed over")
    consumer_start: Any = Field(None, description="of the original's older files; passed over")
