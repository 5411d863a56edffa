"""What was used of limits that several processes share."""

import sqlalchemy as sa

from refill.store.part import Part
from refill.store.tables import rates


class Rates(Part):
    def count_use(self, counted: str, hour: int, count: int) -> int:
        with self._backend.write() as connection:
            connection.execute(
                self._backend.insert_missing(rates), {"counted": counted, "hour": hour}
            )
            own = rates.c.counted == counted
            query = sa.select(rates.c.hour, rates.c.used).where(own).with_for_update()
            row = connection.execute(query).one()
            # another hour's count is over; a clock that lags behind must not begin an hour anew
            used = row.used if row.hour >= hour else 0
            values = {"hour": max(hour, row.hour), "used": used + count}
            connection.execute(rates.update().where(own).values(values))
            return int(used)
