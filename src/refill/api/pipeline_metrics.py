"""Metrics with a sink or transfer as their label, each of its newest backfill."""

from prometheus_client.core import GaugeMetricFamily, Metric

from refill.service.operations import Gauges

LABELS = ("team", "kind", "pipeline")


def by_pipeline(gauges: Gauges) -> list[Metric]:
    state = GaugeMetricFamily(
        "refill_pipeline_state", "1 for the status it is in", labels=[*LABELS, "status"]
    )
    told = {
        "progress": ("refill_pipeline_progress", "Share that is done, 0 to 1"),
        "lag_seconds": ("refill_pipeline_lag_seconds", "Since it last moved; 0 when it is over"),
        "rows_rejected": ("refill_pipeline_rows_rejected", "Rows that could not be delivered"),
        "slices_failed": ("refill_pipeline_slices_failed", "Slices that failed for good"),
        "failures": ("refill_pipeline_failures", "Attempts that failed"),
    }
    families = {
        field: GaugeMetricFamily(name, said, labels=LABELS) for field, (name, said) in told.items()
    }
    for each in gauges.pipelines:
        labels = [str(each.team_id), each.kind, each.name]
        state.add_metric([*labels, each.status], 1)
        for field, family in families.items():
            family.add_metric(labels, getattr(each, field))
    left_out = GaugeMetricFamily(
        "refill_pipelines_left_out",
        "Pipelines without labels: only those backfilled last have them",
        gauges.pipelines_left_out,
    )
    return [state, *families.values(), left_out]
