"""For operators: is it alive, and how much is there to do. No key is needed."""

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from pydantic import BaseModel, ConfigDict, Field

from refill import __version__
from refill.api.document import SinkError, error_answer
from refill.api.gate import ServiceParam
from refill.api.pipeline_metrics import by_pipeline
from refill.service.operations import Gauges

router = APIRouter(tags=["operations"])


class StoreHealth(BaseModel):
    model_config = ConfigDict(extra="allow")

    backend: str = Field(description="sqlite or postgresql")


class Health(BaseModel):
    ok: bool = Field(description="always true: what is not well does not answer so")
    version: str = Field(description="of refill")
    store: StoreHealth = Field(description="the metadata store")


@router.get("/health", responses={503: error_answer("the store is away", SinkError)})
def health(service: ServiceParam) -> Health:
    """Answers as soon as the store does."""
    return Health(ok=True, version=__version__, store=StoreHealth(**service.operations.check()))


class Info(BaseModel):
    version: str = Field(description="of refill")
    nodes: list[str] = Field(description="always empty: servers do not know each other")


class Version(BaseModel):
    version: str = Field(description="of refill")


@router.get("/info")
def info() -> Info:
    """As clients of the original ask."""
    return Info(version=__version__, nodes=[])


@router.get("/info/version")
def version() -> Version:
    return Version(version=__version__)


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
        503: error_answer("the store is away", SinkError),
    },
)
def metrics(service: ServiceParam) -> Response:
    """Prometheus' text form, read from the store at this moment."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(service.operations.gauges()))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


class _Collected:
    def __init__(self, gauges: Gauges) -> None:
        self._gauges = gauges

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> list[Metric]:
        gauges = self._gauges
        backfills = GaugeMetricFamily("refill_backfills", "Backfills by status", labels=["status"])
        for status, count in gauges.backfills_by_status.items():
            backfills.add_metric([status], count)
        slices = GaugeMetricFamily("refill_slices", "Slices by state", labels=["state"])
        for state, count in gauges.slices_by_state.items():
            slices.add_metric([state], count)
        return [
            backfills,
            slices,
            *by_pipeline(gauges),
            GaugeMetricFamily(
                "refill_queue_age_seconds",
                "How long the oldest pending slice has waited",
                gauges.queue_age_seconds,
            ),
            CounterMetricFamily("refill_rows_read", "Rows read", gauges.rows_read),
            CounterMetricFamily("refill_rows_delivered", "Rows delivered", gauges.rows_delivered),
            CounterMetricFamily("refill_rows_rejected", "Rows rejected", gauges.rows_rejected),
            CounterMetricFamily("refill_slice_attempts", "Claims of slices", gauges.attempts),
            CounterMetricFamily("refill_slice_failures", "Failures of slices", gauges.failures),
            CounterMetricFamily("refill_leases_lost", "Leases that ran out", gauges.leases_lost),
            CounterMetricFamily(
                "refill_slices_completed", "Slices completed", gauges.slices_completed
            ),
            CounterMetricFamily(
                "refill_slice_seconds", "Seconds spent in completed slices", gauges.slice_seconds
            ),
        ]
