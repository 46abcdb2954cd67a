"""policyfuzz export: a campaign as a plain table, as tests, or as a dataset."""

from dataclasses import replace
from pathlib import Path

import click

from policyfuzz.cli.console import progress_bar
from policyfuzz.cli.echo import echo
from policyfuzz.cli.options import FOLDER
from policyfuzz.cli.options import trust as trust_option
from policyfuzz.cli.process import user_prints_to_stderr
from policyfuzz.core.errors import UsageError
from policyfuzz.report.tables import table_of, write_table
from policyfuzz.store.reader import CampaignReader

#: What is a table, and what is made of a few findings.
_TABLES, _OF_FINDINGS = ("findings", "errors", "seeds", "history"), ("pytest", "junit", "minari")
#: Findings of the latter by default.
_MOST_FINDINGS = 50

EPILOG = """\
\b
Examples:
  policyfuzz export campaigns/acasxu-1 -o findings.csv
  policyfuzz export campaigns/acasxu-1 --what history --format json -o history.json
  policyfuzz export campaigns/acasxu-1 --what seeds --format npz -o corpus.npz
  policyfuzz export campaigns/acasxu-1 --what pytest -o test_findings.py
  policyfuzz export campaigns/acasxu-1 --what junit -o findings.xml
  policyfuzz export campaigns/acasxu-1 --what minari -o findings-v0

\b
A test file runs the policy of the campaign, or the one in the variable POLICYFUZZ_POLICY. Code that
only the campaign names is run by it only if it was exported with --trust; its first lines say which."""


@click.command(epilog=EPILOG)
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option(
    "--what",
    type=click.Choice([*_TABLES, *_OF_FINDINGS]),
    default="findings",
    show_default=True,
    help="Findings, episodes that could not be run, the corpus, or the totals after each batch, as a table;"
    " representative findings as tests for pytest, as JUnit XML, or their episodes as a Minari dataset.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "json", "npz"]),
    help="Of a table.  [default: the file's ending]",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    metavar="N",
    help="Of tests, JUnit XML and datasets: at most N findings, one of each failure mode, or the most"
    f" different ones.  [default: {_MOST_FINDINGS}]",
)
@trust_option
@click.option("-o", "--out", type=FOLDER, required=True, help="File to write, or folder of a dataset.")
def command(folder: Path, what: str, form: str | None, top: int | None, trust: bool, out: Path) -> None:
    """Write the findings, errors, seeds or history of the campaign in DIR to a file, or findings as tests.

    Input columns of tables are named after their dimension and unit, e.g. own_speed [ft/s].
    """
    if what in _OF_FINDINGS:
        if form is not None:
            raise UsageError(f"--what {what} has a format of its own", "leave out --format")
        _write_findings(CampaignReader(folder), what, top or _MOST_FINDINGS, trust, out)
        return
    if top is not None or trust:
        raise UsageError("--top and --trust are for pytest, junit and minari", "leave them out")
    form = form or out.suffix.removeprefix(".")
    if form not in ("csv", "json", "npz"):
        raise UsageError(f"cannot tell the format of {str(out)!r}", hint="add --format csv, json or npz")
    campaign = CampaignReader(folder)
    with progress_bar() as bar, campaign.snapshot():
        table = table_of(campaign, what)
        shown = replace(table, rows=bar.track(table.rows, total=table.count, description=f"writing {what}"))
        rows = write_table(shown, form, out)
    echo(f"wrote {rows:,} rows to {out}")


def _write_findings(campaign: CampaignReader, what: str, top: int, trust: bool, out: Path) -> None:
    """Write representative findings of `campaign` as tests, as JUnit XML or as a dataset."""
    from policyfuzz.report.ranking import representatives

    findings = representatives(campaign, top)
    if what == "pytest":
        from policyfuzz.report.pytest_file import write_pytest_file

        write_pytest_file(campaign, findings, trust, out)
        echo(f"wrote {len(findings):,} tests to {out}; run them: pytest {out}")
    elif what == "junit":
        from policyfuzz.report.junit import write_junit

        write_junit(campaign, findings, out)
        echo(f"wrote {len(findings):,} failed test cases to {out}")
    else:
        _write_dataset(campaign, [finding.id for finding in findings], trust, out)


def _write_dataset(campaign: CampaignReader, numbers: list[int], trust: bool, out: Path) -> None:
    """Run the findings called `numbers` again, and write their episodes as a Minari dataset.

    The witnesses that triage has found come with them, as demonstrations.
    """
    from policyfuzz.core.recording import record
    from policyfuzz.report.minari import RecordedEpisode, check_dataset_name, write_minari
    from policyfuzz.store.triage_file import triage_of
    from policyfuzz.store.triage_records import WITNESS
    from policyfuzz.triage.replay import target_of

    check_dataset_name(out)
    episodes, failed, triage = [], 0, triage_of(campaign)
    with user_prints_to_stderr():
        target = target_of(campaign, None, trust, None)
        with progress_bar() as bar:
            for number in bar.track(numbers, description="running findings again"):
                finding, known = campaign.finding(number), triage.of(number).avoidance
                witness = known.branch if known is not None and known.verdict == WITNESS else ()
                for branch in dict.fromkeys(((), witness)):
                    recording = record(target, finding.input, finding.case_seed, branch=branch)
                    if recording.executions.errors or (branch and recording.executions.crashed[0]):
                        failed += 1
                        continue
                    episodes.append(
                        RecordedEpisode(recording, number, finding.case_seed, finding.input, bool(branch))
                    )
        write_minari(out, target, episodes)
    if failed:
        echo(f"left out {failed:,} episodes that could not be run again", err=True)
    echo(f"wrote {len(episodes):,} episodes to {out}; load them: minari.MinariDataset({str(out / 'data')!r})")
