"""A picture of what a monitor is worth: ROC curves of all methods, and how long before a crash it warns."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from policyfuzz.report.marks import CRASH, LAST_CHANCE, POLICY, WITNESS
from policyfuzz.store.monitor_record import Curve, MethodRecord, MonitorRecord

#: Method to colour and line style, which tell them apart without colours, too.
_STYLES = {
    "mean-shift": (WITNESS, ":"),
    "logistic": (POLICY, "-"),
    "boosting": (LAST_CHANCE, "--"),
    "density": (CRASH, "-."),
}
#: Inches.
_WIDTH, _HEIGHT = 11.0, 7.2
_INPUTS = ("activations", "observations")


def monitor_figure(record: MonitorRecord) -> Figure:
    """ROC curves against near-misses by input, the same at low rates of false alarms, and lead times."""
    figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
    figure.suptitle(_title(record), fontsize="medium")
    grid = figure.subplots(2, 2)
    for axes, given in zip(grid[0], _INPUTS, strict=True):
        _draw_curves(axes, record, given)
    _draw_warned(grid[1][0], record)
    _draw_leads(grid[1][1], record)
    return figure


def _title(record: MonitorRecord) -> str:
    tested = f"{record.crashes} crashes of {record.lineages} held-out lineages"
    chosen = f"stored: {record.chosen_method} on {record.chosen_input}"
    return f"{record.target}: monitor, {record.what}; {tested}; {chosen}".replace("$", r"\$")


def _draw_curves(axes: Axes, record: MonitorRecord, given: str) -> None:
    """The ROC curves of all methods on one input, near-misses as thick lines, nominal ones as thin ones."""
    axes.set_title(f"{given}: crashes told {_steps(record.lead)} ahead", fontsize="small")
    axes.set(xlabel="false alarms (share of episodes that pass)", ylabel="crashes detected (share)")
    axes.set(xlim=(0, 1), ylim=(0, 1.01))
    axes.plot([0, 1], [0, 1], color="0.8", linewidth=0.8)
    shown = [one for one in record.methods if one.input == given]
    if record.why_no_auc or not shown:
        said = "no curve: " + (
            f"fewer than 10 lineages\n({record.lineages} held out)"
            if record.why_no_auc
            else ("not part of this test" if record.what == "test" else "the policy shows none")
        )
        axes.text(0.5, 0.5, said, ha="center", va="center", fontsize="small")
        return
    for one in shown:
        colour, style = _STYLES.get(one.method, ("0.3", "-"))
        for curve in one.curves:
            is_near = curve.negatives == "near-miss"
            label = f"{one.method}, near-misses (AUC {_area(one, record.lead):.3f})" if is_near else None
            axes.step(
                *_points(curve),
                where="post",
                color=colour,
                linestyle=style,
                linewidth=1.8 if is_near else 0.7,
                label=label,
            )
    axes.plot([], [], color="0.3", linewidth=0.7, label="thin: against nominal episodes")
    axes.legend(fontsize="x-small", loc="lower right", frameon=False)


def _steps(count: int) -> str:
    return f"{count:,} step{'s' * (count != 1)}"


def _points(curve: Curve) -> tuple[Sequence[float], Sequence[float]]:
    return curve.false_alarms, curve.detected


def _area(one: MethodRecord, lead: int) -> float:
    return next((auc.near_miss.value for auc in one.leads if auc.lead == lead), float("nan"))


def _draw_warned(axes: Axes, record: MonitorRecord) -> None:
    """Share of random crashes warned of in time, with its interval, beside the realised false alarms."""
    rows = sorted(record.methods, key=lambda one: (one.input, one.method), reverse=True)
    places = np.arange(len(rows))
    for place, one in enumerate(rows):
        colour = _STYLES.get(one.method, ("0.3", "-"))[0]
        count = one.random.in_time
        if count.of:
            axes.barh(place, count.rate, color=colour, alpha=0.85 if one.input == "activations" else 0.45)
            axes.plot([count.low, count.high], [place, place], color="black", linewidth=1)
    labels = [
        f"{one.method}, {one.input}"
        + (f"\n{one.false_alarms.rate:.2%} false alarms" if one.false_alarms.of else "")
        for one in rows
    ]
    axes.set_yticks(places, labels, fontsize="x-small")
    axes.set(xlim=(0, 1), xlabel="share warned, with 95 % interval", ylim=(-0.6, len(rows) - 0.4))
    crashes = record.chosen.random.in_time.of
    if not crashes:
        said = f"no crash in {record.draws:,} random episodes"
        axes.text(0.5, (len(rows) - 1) / 2, said, ha="center", va="center", fontsize="small")
    axes.set_title(
        f"{crashes:,} crash{'es' * (crashes != 1)} of random sampling, warned of {_steps(record.lead)} ahead"
        " or more;\n"
        f"left: realised false alarms per nominal episode, {record.wanted_rate:.2%} wanted at most",
        fontsize="small",
    )


def _draw_leads(axes: Axes, record: MonitorRecord) -> None:
    """How many crashes are warned of so many steps ahead or more."""
    chosen = record.chosen
    sets = (
        ("crashes of random sampling", chosen.random.leads, POLICY, "-"),
        ("findings of held-out lineages", chosen.findings.leads, WITNESS, "--"),
    )
    for name, leads, colour, style in sets:
        if leads:
            # the share falls after these steps alone
            steps = np.unique([1, max(1, *leads) + 1, *(lead for lead in leads if lead > 0)])
            share = [(np.array(leads) >= step).mean() for step in steps]
            axes.step(
                steps, share, where="pre", color=colour, linestyle=style, label=f"{name} ({len(leads):,})"
            )
    axes.axvline(record.lead, color="0.5", linewidth=0.8, linestyle=":", label=_steps(record.lead))
    ahead = chosen.findings.no_return_leads
    if ahead:
        in_time = np.mean(np.array(ahead) >= 0)
        axes.plot([], [], " ", label=f"before the point of no return: {in_time:.0%} of {len(ahead)} findings")
    axes.set(xlabel="steps from the first alarm to the crash, or more", ylabel="share of crashes")
    axes.set(ylim=(0, 1.02), xlim=(0, None))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_title(f"lead time of the stored monitor ({chosen.method}, {chosen.input})", fontsize="small")
    axes.legend(fontsize="x-small", frameon=False, loc="lower left")
