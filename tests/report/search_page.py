# SPDX-License-Identifier: Apache-2.0
"""What the page of a search should show, from its JSON."""
import decimal
import math


def differences(what, shown, wanted):
    if shown != wanted:
        yield f"{what}: shows {shown!r}, want {wanted!r}"[:600]


def diverged(trial):
    return trial["status"] == "diverged"


def loss_points(report):
    """(trial, epoch, loss) of all; infinite in the epoch of a divergence."""
    for trial in report["trials"]:
        for epoch in trial["epochs"]:
            if epoch["validation_loss"] is not None:
                yield (trial["index"], epoch["epoch"],
                       epoch["validation_loss"])
        if diverged(trial):
            yield trial["index"], trial["epochs_done"] + 1, math.inf


def lr_points(report):
    """(lr, loss after the last epoch) of all that have one or diverged."""
    for trial in report["trials"]:
        if diverged(trial):
            yield trial["lr"], math.inf
        elif last(trial, "validation_loss") is not None:
            yield trial["lr"], last(trial, "validation_loss")


def drawn(points):
    """The points, if a figure is made of them: it wants a finite loss."""
    points = sorted(points)
    return points if any(math.isfinite(p[-1]) for p in points) else []


def logarithmic(losses):
    """Whether their axis is: as far as losses are not far above the others."""
    losses = sorted(filter(math.isfinite, losses))
    low, median = losses[0], losses[len(losses) // 2]
    high = min(losses[-1], max(50 * low, 4 * median))
    return low > 0 and high > 5 * low


def figure_errors(report, charts):
    def shown(name, *fields):
        return sorted(tuple(float(p[field]) for field in fields)
                      for p in charts.pop(name, {"points": []})["points"])

    classes = [p["cls"] for p in
               charts.get("fig-loss", {"points": []})["points"]
               if int(p["series"]) == report["best"]]
    if not all("best" in cls.split() for cls in classes):
        yield "fig-loss: the best is not highlighted"
    yield from differences("fig-loss", shown("fig-loss", "series", "x", "y"),
                           drawn(loss_points(report)))
    wanted = drawn(lr_points(report)) if "lr" in report["varied"] else []
    yield from differences("fig-lr", shown("fig-lr", "x", "y"), wanted)
    yield from differences(
        "fig-groups",
        [(p["kind"], p["way"], float(p["value"])) for p in
         charts.pop("fig-groups", {"points": []})["points"]],
        [(group["kind"], way, group[f"{way}_us"]) for group in report["groups"]
         for way in ("vector", "loop") if group[f"{way}_us"] is not None])
    if charts:
        yield f"figures of nothing: {list(charts)}"


def axes(charts):
    """The logarithmic axes by figure."""
    result = {}
    for name in {"fig-loss", "fig-lr"} & charts.keys():
        ys = [float(p["y"]) for p in charts[name]["points"]]
        result[name] = ("x" if name == "fig-lr" else "") + (
            "y" if logarithmic(ys) else "")
    return result


# ---- the table ----

def last(trial, field):
    return trial["epochs"][-1][field] if trial["epochs"] else None


def keys_of(report):
    """What each column is sorted by: a function of a trial."""
    return [lambda trial: trial["index"],
            *(lambda trial, key=key: trial[key] for key in report["varied"]),
            lambda trial: trial["epochs_done"],
            lambda trial: last(trial, "loss"),
            lambda trial: last(trial, "validation_loss"),
            lambda trial: last(trial, "validation_accuracy"),
            lambda trial: trial["status_text"]]


def number(value):
    """As Intl.NumberFormat with four digits writes what is not too large."""
    if value is None:
        return "–"
    exact = decimal.Decimal(repr(value))  # rounded as it is written
    digits = max(0, 3 - exact.adjusted()) if value else 0
    text = str(exact.quantize(decimal.Decimal(1).scaleb(-digits),
                              decimal.ROUND_HALF_UP))
    return text.rstrip("0").rstrip(".") if "." in text else text


def table_errors(report, tables):
    rows = tables["trials-table"]["rows"]
    yield from differences("order of trials", [int(row[0]) for row in rows],
                           [trial["index"] for trial in report["trials"]])
    for trial, row in zip(report["trials"], rows):
        accuracy = last(trial, "validation_accuracy")
        best = ", best" if trial["index"] == report["best"] else ""
        yield from differences(f"row of trial {trial['index']}", row[-5:], [
            number(trial["epochs_done"]), number(last(trial, "loss")),
            number(last(trial, "validation_loss")),
            "–" if accuracy is None else f"{100 * accuracy:.2f} %",
            trial["status_text"] + best])


def sorting_errors(driver, report):
    """Presses each head twice and reads the order of the rows."""
    read = """
        const table = document.getElementById("trials-table");
        return [...table.tBodies[0].rows].map((r) => r.cells[0].textContent);
        """
    by_index = {trial["index"]: trial for trial in report["trials"]}
    heads = driver.find_elements("css selector", "#trials-table th")
    for head, key in zip(heads, keys_of(report), strict=True):
        button = head.find_element("tag name", "button")
        for direction in ("ascending", "descending"):
            driver.execute_script("arguments[0].focus()", button)
            button.send_keys("\n")
            what = f"sorted by {button.text}, {direction}"
            yield from differences(what, head.get_attribute("aria-sort"),
                                   direction)
            shown = [key(by_index[int(index)])
                     for index in driver.execute_script(read)]
            known = [value for value in shown if value is not None]
            yield from differences(what, shown, sorted(
                known, reverse=direction == "descending") +
                [None] * (len(shown) - len(known)))


def text_errors(report, texts):
    losses = texts["losses"]
    for wanted, words in (
            (report["best"] is None, "No trial has a finite loss."),
            (report["ended"], f"Ended early: {report['ended']}."),
            (report["resumed"], "ended by an earlier run"),
            (report["epoch_stride"] > 1, "One epoch in")):
        if bool(wanted) != (words in losses):
            yield f"losses: {words!r} is there or is missing: {losses!r}"
    if report["best"] is not None:
        best = next(trial for trial in report["trials"]
                    if trial["index"] == report["best"])
        if number(last(best, "validation_loss")) not in texts["header"]:
            yield f"header: no best loss: {texts['header']!r}"
