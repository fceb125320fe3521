#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens pages of train --report and of searches in headless Chromium.

  report_test.py --screenshots FOLDER PAGE.html ...

Every figure must show what the page's JSON says, at the width of a phone and
of a desktop, light and dark, for a pointer and for the keyboard, without an
error on the console or a request. Exits with 77, skipped, where there is no
Chromium, unless ONESTEP_REQUIRE_CHROMIUM=1.
"""
import argparse
import base64
import collections
import json
import math
import os
import pathlib
import re
import shutil
import sys

import search_page
from search_page import differences

SKIPPED = 77
MAX_BYTES = 1_000_000
MOST_KEYS = 200  # of a figure, of which a large search has thousands
VIEWS = [(360, 740, True), (1280, 900, False)]
PHASES = ("forward", "loss", "backward", "update")
HERE = pathlib.Path(__file__).parent


def start_chromium():
    """The driver, or the reason why there is none."""
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        return None, f"{sys.executable} has no selenium: python3-selenium"
    browser, driver = map(shutil.which, ("chromium", "chromedriver"))
    if not browser or not driver:
        return None, ("no chromium or chromedriver in $PATH: packages chromium "
                      "and chromium-driver of Debian (Ubuntu has a snap)")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    # Root may run Chromium only without its sandbox; containers have a small
    # /dev/shm.
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs",
                           {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(driver))
    # What ResizeObserver says is an event, and only a remark in the log.
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {
        "source": "window.problems = []; window.onerror = "
                  "(message) => window.problems.push(message);"})
    return driver, None


def open_page(driver, path, width, height, mobile, scheme):
    """The page as page_state.js sees it, when all charts are drawn."""
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": height, "deviceScaleFactor": 1,
        "mobile": mobile})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
        {"name": "prefers-color-scheme", "value": scheme}]})
    driver.get(path.resolve().as_uri())
    driver.set_script_timeout(20)
    return driver.execute_async_script((HERE / "page_state.js").read_text(),
                                       width)


def screenshot(driver, file):
    size = driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
    clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"],
            "scale": 1}
    data = driver.execute_cdp_cmd("Page.captureScreenshot", {
        "format": "png", "captureBeyondViewport": True, "clip": clip})["data"]
    file.write_bytes(base64.b64decode(data))


def logged_errors(driver):
    for entry in driver.get_log("browser"):
        if entry["level"] == "SEVERE":
            yield f"console: {entry['message']}"
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            if not url.startswith(("file:", "data:", "about:")):
                yield f"requests {url}"


# ---- what the figures should show, from the JSON ----

def epoch_points(report, fields):
    return [(name, e["epoch"], e[field]) for field, name in fields.items()
            for e in report["epochs"] if e[field] is not None]


def step_parts(report):
    sums = collections.defaultdict(float)
    for profile in report["profiles"]:
        for row in profile["rows"]:
            op = row["kind"] == "op" and row["phase"] in PHASES
            part = row["phase"] if op else row["kind"].replace("_", " ")
            sums[profile["name"], row["worker"], part] += row["mean_us"]
    return {key: value for key, value in sums.items() if value != 0}


def fusion_parts(report):
    profiles = {p["name"]: p["rows"] for p in report["profiles"]}
    if not {"fused", "unfused"} <= profiles.keys():
        return []

    def parts(name, rows):
        return [(name, row["op"] or row["kind"].replace("_", " "),
                 row["mean_us"]) for row in rows]

    ops = {name: [row for row in rows if row["kind"] == "op"]
           for name, rows in profiles.items()}
    wanted = []
    for i, step in enumerate(report["graph"]["steps"]):
        wanted += parts("unfused", [ops["unfused"][k] for k in step["unfused"]])
        wanted += parts("fused", [ops["fused"][i]])
    for name in ("unfused", "fused"):
        wanted += parts(name, [row for row in profiles[name]
                               if row["kind"] != "op"])
    return wanted


def sweep_points(report, field):
    sweep = report["sweep"] or {"cells": [], "peers": []}
    return sorted((cell["batch"], cell[field])
                  for cell in sweep["cells"] + sweep["peers"]
                  if not cell.get("refused") and cell.get(field) is not None)


def figure_errors(report, charts):
    def lines(name):
        return [(p["series"], float(p["x"]), float(p["y"]))
                for p in charts.pop(name, {"points": []})["points"]]

    for name, fields in {
            "fig-loss": {"loss": "training", "validation_loss": "validation"},
            "fig-accuracy": {"train_accuracy": "training",
                             "validation_accuracy": "validation"}}.items():
        yield from differences(name, lines(name), epoch_points(report, fields))
    for name, field in {"fig-sweep": "seconds_per_epoch",
                        "fig-sweep-accuracy": "validation_accuracy"}.items():
        shown = lines(name)
        yield from differences(name, sorted(p[1:] for p in shown),
                               sweep_points(report, field))
        if len(set(p[:2] for p in shown)) != len(shown):
            yield f"{name}: a series has two values for a batch"

    if report["profiles"]:
        shown = {(p["profile"], int(p["worker"]), p["part"]): float(p["value"])
                 for p in charts.pop("fig-step")["points"]}
        wanted = step_parts(report)
        yield from differences("fig-step", shown.keys(), wanted.keys())
        for key, value in wanted.items():
            if not math.isclose(shown.get(key, 0), value, rel_tol=1e-9):
                yield f"fig-step: {key} is {shown.get(key)}, want {value}"
    yield from differences(
        "fig-fusion",
        [(p["profile"], p["op"], float(p["value"])) for p in
         charts.pop("fig-fusion", {"points": []})["points"]],
        fusion_parts(report))
    for i, profile in enumerate(report["profiles"]):
        chart = charts.pop(f"fig-ops-{i}")
        yield from differences(
            f"fig-ops-{i}",
            [(p["op"], float(p["value"]), float(p["share"]))
             for p in chart["points"]],
            [(r["op"], r["mean_us"], r["share"]) for r in profile["rows"]])
        yield from differences(f"fig-ops-{i}: rows of its table",
                               chart["table"]["rows"], len(profile["rows"]))
    yield from differences(
        "fig-memory",
        [(p["kind"], float(p["value"]))
         for p in charts.pop("fig-memory")["points"]],
        [(k["kind"], k["bytes"]) for k in report["memory"]["kinds"]])
    if charts:
        yield f"figures of nothing: {list(charts)}"


def leaves(value):
    """All values in `value`, as the page writes them."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [leaf for item in value for leaf in leaves(item)]
    if isinstance(value, bool):
        return [str(value).lower()]
    if isinstance(value, float):  # 1.0 is 1 and 1e-07 is 1e-7
        return [re.sub(r"\.0$|(?<=e-)0", "", str(value))]
    return [] if value is None else [str(value)]


def text_errors(report, texts):
    for name in ("config", "machine"):
        for leaf in leaves(report[name]):
            if leaf not in texts[name]:
                yield f"{name}: no {leaf!r}"
    if texts["title"] != report["title"]:
        yield f"title: {texts['title']!r}"
    if report["command"] not in texts["header"]:
        yield "header: no command"
    test = report.get("test")
    if test and f"{100 * test['accuracy']:.2f} %" not in texts["header"]:
        yield "header: no accuracy of the test"


# ---- geometry ----

def close_to_line(pairs, what):
    """That the second of each pair is a linear function of the first."""
    low, high = min(pairs), max(pairs)
    if low[0] == high[0]:
        return
    slope = (high[1] - low[1]) / (high[0] - low[0])
    for value, pixel in pairs:
        if abs(low[1] + slope * (value - low[0]) - pixel) > 0.6:
            yield f"{what}: {value} is drawn at {pixel}"


def geometry_errors(charts, logarithmic):
    """That points and bars stand where the ticks of their axes say.

    What is above the last tick of y stands there.
    """
    for name, chart in charts.items():
        points, ticks = chart["points"], chart["ticks"]
        for axis, place in (("x", "left"), ("y", "top")):
            if axis not in points[0]:
                continue
            value = math.log if axis in logarithmic.get(name, "") else float
            top = max((float(t[axis]) for t in ticks if axis in t),
                      default=math.inf) if axis == "y" else math.inf
            pairs = [(value(min(float(p[axis]), top)), p[place])
                     for p in points]
            pairs += [(value(float(t[axis])), float(t["at"]))
                      for t in ticks if axis in t]
            yield from close_to_line(pairs, f"{name} {axis}")
        if "value" in points[0]:
            zero = float(ticks[0]["at"])
            yield from close_to_line(
                [(max(0, float(p["value"])), p["width"]) for p in points] +
                [(float(t["x"]), float(t["at"]) - zero) for t in ticks],
                f"{name} width")
        yield from (f"{name}: {problem}" for problem in chart["text"])


def picture_errors(graph, pictures):
    if graph["before"] is None:
        if pictures:
            yield "pictures of no graph"
        return
    groups = graph["groups"]
    for name in ("graph-before", "graph-after"):
        frames = pictures[name]["frames"]
        yield from differences(f"{name}: frames",
                               [f["label"] for f in frames],
                               [f"{i}: {g['name']}"
                                for i, g in enumerate(groups, 1)])
    for frame, group in zip(pictures["graph-before"]["frames"], groups):
        yield from differences(f"ops in frame {frame['label']}",
                               sorted(frame["ops"]),
                               sorted(group["from"].split(" + ")))
    for frame, group in zip(pictures["graph-after"]["frames"], groups):
        yield from differences(f"ops in frame {frame['label']}", frame["ops"],
                               [group["name"]])


# ---- the keyboard ----

def keyboard_errors(driver, charts, pictures):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    def press(key):
        ActionChains(driver, duration=0).send_keys(key).perform()
        return driver.execute_script("""
            const at = document.activeElement;
            const figure = at.closest("figure");
            return {figure: figure?.id, label: at.dataset?.label, cls:
                    at.getAttribute("class"), region: at.id, readout:
                    figure?.querySelector(".readout")?.textContent};""")

    at = press(Keys.TAB)
    if at["cls"] != "skip":
        yield "keyboard: Tab does not begin at the skip link"
    reached, wanted = set(), {*charts, *pictures}
    for _ in range(400):
        at = press(Keys.TAB)
        if at["cls"] == "skip" or not at["figure"] and wanted <= reached:
            break
        reached.add(at["region"])
        if not at["label"]:
            continue
        reached.add(at["figure"])
        points = charts[at["figure"]]["points"]
        labels = [p["label"] for p in points[:MOST_KEYS]]
        seen = []
        for _ in labels:
            seen.append(at["label"])
            if at["readout"] != at["label"]:
                yield f"{at['figure']}: reads {at['readout']!r}"
            at = press(Keys.ARROW_RIGHT)
        yield from differences(f"{at['figure']}: by arrow keys", seen, labels)
        press(Keys.HOME)
    if wanted - reached:
        yield f"keyboard: does not reach {wanted - reached}"


def train_errors(report, state):
    charts = state["charts"]
    yield from geometry_errors(
        charts, {"fig-sweep": "xy", "fig-sweep-accuracy": "x"})
    yield from picture_errors(report["graph"], state["pictures"])
    yield from figure_errors(report, dict(charts))
    if report.get("ended", "") not in state["texts"]["training"]:
        yield "training: not how the run ended"


def search_errors(report, state):
    charts = state["charts"]
    yield from geometry_errors(charts, search_page.axes(charts))
    yield from search_page.table_errors(report, state["tables"])
    yield from search_page.text_errors(report, state["texts"])
    yield from search_page.figure_errors(report, dict(charts))


def page_errors(driver, path, folder):
    source = path.read_text()
    if len(source) >= MAX_BYTES:
        yield f"{len(source)} bytes, want fewer than {MAX_BYTES}"
    report = json.loads(re.search(
        r'<script type="application/json" id="report">(.*?)</script>', source,
        re.DOTALL)[1])
    for width, height, mobile in VIEWS:
        for scheme in ("light", "dark"):
            view = f"{width} {scheme}"
            state = open_page(driver, path, width, height, mobile, scheme)
            screenshot(driver, folder / f"{path.stem}-{width}-{scheme}.png")
            content = search_errors if "trials" in report else train_errors
            errors = [*state["errors"], *logged_errors(driver),
                      *text_errors(report, state["texts"]),
                      *content(report, state)]
            if not mobile and scheme == "light":
                errors += keyboard_errors(driver, state["charts"],
                                          state["pictures"])
                if "trials" in report:
                    errors += search_page.sorting_errors(driver, report)
            yield from (f"{view}: {error}" for error in errors)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--screenshots", type=pathlib.Path, required=True)
    parser.add_argument("pages", type=pathlib.Path, nargs="+")
    options = parser.parse_args()
    driver, why = start_chromium()
    if driver is None:
        required = os.environ.get("ONESTEP_REQUIRE_CHROMIUM") == "1"
        print(f"{'failed' if required else 'skipped'}: {why}")
        return 1 if required else SKIPPED
    options.screenshots.mkdir(parents=True, exist_ok=True)
    try:
        errors = [f"{page.name}: {error}" for page in options.pages
                  for error in page_errors(driver, page, options.screenshots)]
    finally:
        driver.quit()
    print("\n".join(errors or ["ok"]))
    print(f"screenshots: {options.screenshots}")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
