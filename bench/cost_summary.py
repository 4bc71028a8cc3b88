"""From the raw runs of run-cost to its figures and its text. Pure: it runs nothing.

Every figure is the median over pairs with the exact interval of the sign test at 95%.
"""
from pairs import differences, median_interval, ratios

RESOLVABLE_S = 0.01  # a target of less CPU time is all start and end: a ratio would compare noise

TITLES = {"assay": "assay run", "loop": "statm loop", "time": "GNU time -v", "perf": "perf stat"}


def column(runs, arm, key):
    return [run[key] for run in runs[arm]]


def figure(values):
    middle, low, high = median_interval([v for v in values if v is not None])
    return {"median": middle, "low": low, "high": high}


def around(runs, arm, what):
    """What an arm used around its target, in seconds."""
    return differences(column(runs, arm, f"outer_{what}"), column(runs, arm, f"target_{what}"))


def resolvable(runs):
    return figure(column(runs, "bare", "target_cpu_s"))["median"] >= RESOLVABLE_S


def summarise_observer(runs, arm):
    result = {}
    for key in ("cpu_s", "wall_s", "switches"):
        own, bare = column(runs, arm, f"target_{key}"), column(runs, "bare", f"target_{key}")
        result[f"target_{key}_ratio"] = figure(ratios(own, bare) if resolvable(runs) else [])
    # The bare arm's own remainder, the start and end of the target's process, is no observer's cost.
    for key in ("cpu_s", "wall_s"):
        result[f"outside_{key}"] = figure(differences(around(runs, arm, key), around(runs, "bare", key)))
    if "own_cpu_s" in runs[arm][0]:
        result["own_cpu_s"] = figure(column(runs, arm, "own_cpu_s"))
    return result


def core_shares(runs):
    return ratios([run["own_cpu_s"] for run in runs], [run["observed_s"] for run in runs])


def running_rates(runs, fixed, arm):
    """CPU seconds per second that an observer uses while the target runs: its own account, less what it used for a
    program that ends at once."""
    start_and_end = figure(column(fixed, arm, "own_cpu_s"))["median"]
    more = [cpu - start_and_end for cpu in column(runs, arm, "own_cpu_s")]
    return ratios(more, column(runs, arm, "target_wall_s"))


def summarise(runs, fixed=None):
    """The figures of one target from {arm: [run, ...]}, where the i-th runs of all arms belong to one half block.
    `fixed` is the same for the target that ends at once, where it was measured."""
    observers = {arm: summarise_observer(runs, arm) for arm in runs if arm != "bare"}
    assay = {
        "cpu_ratio_to_loop": figure(ratios(column(runs, "assay", "own_cpu_s"), column(runs, "loop", "own_cpu_s"))),
        "core_share": figure(core_shares(runs["assay"]) if resolvable(runs) else []),
        "finish_cpu_s": figure(column(runs, "assay", "finish_cpu_s")),
        "peak_mib": figure(column(runs, "assay", "own_peak_mib")),
        "outside_peak_mib": figure(column(runs, "assay", "outer_peak_mib")),
        "interval_ms": figure(column(runs, "assay", "interval_ms")),
        "perturbed": sum(bool(run["perturbed"]) for run in runs["assay"]),
    }
    if fixed and resolvable(runs):
        rates = {arm: running_rates(runs, fixed, arm) for arm in ("assay", "loop")}
        assay["running_rate"] = figure(rates["assay"])
        assay["running_rate_of_loop"] = figure(rates["loop"])
        assay["running_ratio_to_loop"] = figure(ratios(rates["assay"], rates["loop"]))
    summary = {"pairs": len(runs["bare"]), "observers": observers, "assay": assay}
    for key in ("cpu_s", "wall_s"):
        summary[f"bare_{key}"] = figure(column(runs, "bare", f"target_{key}"))
    return summary


BUSY = ("compute", "mappings", "living", "short")

# (targets, what, where the figure is, the most it may be)
GOALS = [
    (BUSY, "target's CPU time against the bare command", ("observers", "assay", "target_cpu_s_ratio"), 1.005),
    (("compute", "mappings"), "assay's CPU time against the loop's", ("assay", "cpu_ratio_to_loop"), 1.5),
    (("compute", "mappings"), "the same without the start", ("assay", "running_ratio_to_loop"), 1.5),
    (("living",), "assay's share of a core", ("assay", "core_share"), 0.03),
    (BUSY, "assay's peak memory, own account, MiB", ("assay", "peak_mib"), 25),
    # From outside the largest process is seen, which for "mappings" is the target.
    (("nothing", "compute", "short"), "its largest process from outside, MiB", ("assay", "outside_peak_mib"), 25),
]


def judge(value, limit):
    if value["median"] is None:
        return "unknown"
    if value["low"] is None:
        return ("met" if value["median"] <= limit else "missed") + " by the median of too few pairs"
    if value["low"] <= limit < value["high"]:
        return ("met" if value["median"] <= limit else "missed") + " by the median only"
    return "met" if value["high"] <= limit else "missed"


def goals_of(target, summary):
    for targets, what, path, limit in GOALS:
        if target not in targets:
            continue
        value = summary
        for key in path:
            value = value.get(key, {})
        if not value:  # no fixed part was measured
            continue
        yield {"what": what, "limit": limit, "value": value, "verdict": judge(value, limit)}


def text_of(value, form="{:.4f}", scale=1.0):
    if value["median"] is None:
        return "-"
    middle = form.format(scale * value["median"])
    if value["low"] is None:
        return middle
    return f"{middle} [{form.format(scale * value['low'])}, {form.format(scale * value['high'])}]"


def median_of(value, form, scale=1.0):
    return "-" if value["median"] is None else form.format(scale * value["median"])


HEADINGS = ["", "target's CPU, ratio", "wall, ratio", "switches", "adds wall, ms", "adds CPU, ms", "own account, ms"]


def observer_row(arm, figures):
    return [
        TITLES[arm],
        text_of(figures["target_cpu_s_ratio"]),
        text_of(figures["target_wall_s_ratio"], "{:.3f}"),
        median_of(figures["target_switches_ratio"], "{:.2f}"),
        median_of(figures["outside_wall_s"], "{:.1f}", 1000),
        text_of(figures["outside_cpu_s"], "{:.1f}", 1000),
        median_of(figures["own_cpu_s"], "{:.1f}", 1000) if "own_cpu_s" in figures else "-",
    ]


def aligned(rows):
    widths = [max(len(cell) for cell in cells) for cells in zip(*rows)]
    return ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def assay_lines(assay):
    """assay's own account, in lines."""
    ratio, share = text_of(assay["cpu_ratio_to_loop"], "{:.2f}"), text_of(assay["core_share"], "{:.2f}", 100)
    yield f"  assay while the command ran: {ratio} times the loop's CPU, {share} % of a core;"
    after, peak = median_of(assay["finish_cpu_s"], "{:.1f}", 1000), median_of(assay["peak_mib"], "{:.1f}")
    yield (
        f"    {after} ms for the results afterwards; peak memory {peak} MiB; "
        f"effective interval {text_of(assay['interval_ms'], '{:.1f}')} ms"
    )
    if "running_rate" in assay:
        own, loop = (median_of(assay[key], "{:.1f}", 1000) for key in ("running_rate", "running_rate_of_loop"))
        ratio = text_of(assay["running_ratio_to_loop"], "{:.2f}")
        yield f"    without the start: {own} ms per second, the loop {loop}: {ratio} times"
    if assay["perturbed"]:
        yield f"    {assay['perturbed']} of these runs call themselves perturbed"


def text_report(target, description, summary):
    note = ": too few for intervals" if summary["bare_cpu_s"]["low"] is None else ""
    lines = [
        f"{target}: {description}",
        f"  {summary['pairs']} pairs{note}; bare: "
        f"{text_of(summary['bare_cpu_s'], '{:.3f}')} s of CPU in {median_of(summary['bare_wall_s'], '{:.3f}')} s",
    ]
    lines += aligned([HEADINGS] + [observer_row(arm, figures) for arm, figures in summary["observers"].items()])
    lines += assay_lines(summary["assay"])
    for goal in goals_of(target, summary):
        lines.append(f"  goal: {goal['what']}, at most {goal['limit']}: {text_of(goal['value'])}: {goal['verdict']}")
    return "\n".join(lines)
