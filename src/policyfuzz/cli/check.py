"""policyfuzz check: look at a target before fuzzing it."""

import dataclasses

import click

from policyfuzz.cli.options import as_json, policy


@click.command(epilog="Example: policyfuzz check acasxu")
@click.argument("target")
@policy
@click.option("--episodes", default=1000, show_default=True, help="Random episodes to run.")
@click.option("-s", "--seed", default=0, show_default=True, help="Of the random episodes.")
@as_json
def command(target: str, policy: str | None, episodes: int, seed: int, is_json: bool) -> int:
    """Run random episodes of TARGET and say what is wrong, with a hint. Exit code 3 if it cannot be fuzzed.

    The same check runs at the start of every campaign.
    """
    from policyfuzz.campaign.health import check_target, is_unhealthy
    from policyfuzz.cli.console import print_json, progress_bar
    from policyfuzz.errors import UsageError
    from policyfuzz.targets.registry import load_target

    if episodes < 1 or seed < 0:
        raise UsageError(f"episodes is {episodes} and seed {seed}, expected at least 1 and 0")
    loaded = load_target(target, policy)
    with progress_bar() as bar:
        diagnoses = check_target(
            loaded, episodes, seed, lambda parts: bar.track(parts, description="random episodes, batches")
        )
    code = 3 if is_unhealthy(diagnoses) else 0
    if is_json:
        report = [dataclasses.asdict(diagnosis) for diagnosis in diagnoses]
        print_json({"target": loaded.name, "healthy": code == 0, "diagnoses": report})
        return code
    click.echo(f"{loaded.name}: policy {loaded.policy_name}, horizon {loaded.horizon} steps")
    for dimension in loaded.inputs.dimensions:
        bounds = f"{dimension.describe(dimension.low)} to {dimension.describe(dimension.high)}"
        click.echo(f"  input {dimension.name}: {dimension.kind}, {bounds} {dimension.unit}".rstrip())
    click.echo(f"  crash kinds: {', '.join(loaded.oracle.kinds)}")
    click.echo(f"  solvable inputs only: {'yes' if loaded.solvable else 'nobody can tell for this target'}")
    for diagnosis in diagnoses:
        click.echo(f"{diagnosis.level.upper():<9} {diagnosis.name}: {diagnosis.message}")
        if diagnosis.hint:
            click.echo(f"{'':<9}   hint: {diagnosis.hint}")
    return code
