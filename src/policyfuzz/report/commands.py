"""The command lines that a reader may go on with. All that a campaign names is quoted for a shell."""

import dataclasses
import shlex

from policyfuzz.core.settings import CampaignConfig, CampaignOptions, StopReason
from policyfuzz.store.reader import CampaignReader

#: What stands for the policy of a target that brings its own, or one of a Python program.
POLICY_OF_TARGET = "the target's own"


def code_of(campaign: CampaignReader) -> list[str]:
    """The code that the target and the policy of `campaign` run, for a reader; none of installed packages.

    A stranger may have named that code, so show it beside every command with --trust.
    """
    # imported here: listing findings should not wait for it
    from policyfuzz.targets.trust import named_code

    return [str(one) for one in named_code(campaign.config.target, campaign.config.policy)]


def next_commands(campaign: CampaignReader) -> dict[str, str]:
    """What a reader of `campaign` may want next, by name."""
    # imported here: listing findings should not wait for it
    from policyfuzz.triage.stored_estimate import estimate_path

    return {
        "triage": triage_command(campaign),
        "coverage": _joined("policyfuzz", "coverage", str(campaign.folder), *_trust(campaign)),
        "estimate": estimate_command(campaign, str(estimate_path(campaign.folder))),
        "compare": compare_command(campaign),
        "again": fuzz_command(campaign),
    }


def replay_command(campaign: CampaignReader, name: int | str) -> str:
    """Runs finding `name`, a number or a failure mode such as M1, again."""
    return _joined("policyfuzz", "replay", str(campaign.folder), str(name), *_trust(campaign))


def triage_command(campaign: CampaignReader) -> str:
    """Finds the failure modes."""
    return _joined("policyfuzz", "triage", str(campaign.folder), *_trust(campaign))


def estimate_command(campaign: CampaignReader, path: str) -> str:
    """Estimates the failure probability, and keeps the result in the file `path`."""
    words = ("policyfuzz", "estimate", campaign.config.target, *_policy(campaign), *_trust(campaign))
    return _joined(*words, "-o", path)


def compare_command(campaign: CampaignReader) -> str:
    """Compares the policy with another one, and keeps the result beside the campaign."""
    path = campaign.folder / "compare.json"
    words = ("policyfuzz", "compare", str(campaign.folder), "--policy", "OTHER", *_trust(campaign))
    return _joined(*words, "-o", str(path))


def fuzz_command(campaign: CampaignReader) -> str:
    """Runs the same campaign again."""
    config, reason = campaign.config, campaign.stop_reason()
    words = ["policyfuzz", "fuzz", config.target, *_policy(campaign)]
    chosen, usual = CampaignOptions.of(config), CampaignOptions.of(CampaignConfig(config.target))
    for option in dataclasses.fields(chosen):
        value = getattr(chosen, option.name)
        if value is not None and value != getattr(usual, option.name):
            words += [f"--{option.name.replace('_', '-')}", str(value)]
    for reference in config.references.splitlines():
        words += ["--reference", reference]
    now = campaign.progress()
    if reason == StopReason.MAX_FINDINGS.value:
        words += ["--max-findings", str(now.findings)]
    elif reason not in (StopReason.EXHAUSTED.value, StopReason.SEARCH_ENDED.value):
        words += ["--max-execs", str(max(now.executions, 1))]
    return _joined(*words, *_trust(campaign))


def _policy(campaign: CampaignReader) -> list[str]:
    return ["--policy", campaign.config.policy] if campaign.config.policy else []


def _trust(campaign: CampaignReader) -> list[str]:
    return ["--trust"] if code_of(campaign) else []


def _joined(*words: str) -> str:
    return " ".join(map(shlex.quote, words))
