"""What a campaign has come to, in plain values."""

from dataclasses import asdict
from typing import Any

from policyfuzz.campaign.reader import CampaignReader
from policyfuzz.campaign.records import Progress
from policyfuzz.report.failure_probability import FailureProbability


def totals(campaign: CampaignReader, progress: Progress, stop_reason: str | None) -> dict[str, Any]:
    """The totals that matter, for programs."""
    config = campaign.config
    return {
        "target": config.target,
        "policy": config.policy,
        "strategy": config.strategy,
        "seed": config.seed,
        "executions": progress.executions,
        "findings": progress.findings,
        "distinct_findings": progress.distinct_findings,
        "imported_findings": progress.imported_findings,
        "flaky_findings": progress.flaky,
        "unconfirmed_findings": progress.unconfirmed,
        "completed": progress.completed,
        "errors": progress.errors,
        "hangs": progress.hangs,
        "simulator_crashes": progress.simulator_crashes,
        "workers": progress.workers,
        "workers_ready": progress.workers_ready,
        "utilisation": progress.utilisation,
        "restarts": progress.restarts,
        "valid_rate": progress.valid_rate,
        "seconds": progress.seconds,
        "executions_per_second": progress.executions_per_second,
        "time_split": progress.time_split,
        "samples": progress.samples,
        "sample_crashes": progress.sample_crashes,
        "failure_probability": asdict(FailureProbability.of_campaigns([progress])),
        "corpus": progress.corpus,
        "stop_reason": stop_reason,
        "campaign": str(campaign.folder),
    }
