// SPDX-License-Identifier: Apache-2.0
// The page of a search, from its JSON; the figures fig-*.
"use strict";

// Trials of more values than this are not told apart by their looks.
const MOST_LOOKS = 7;
// A loss of more than so many times the least and the median is drawn at the
// top: an axis as far as that would hide what tells the good ones apart.
const TOP_OF_LEAST = 50, TOP_OF_MEDIAN = 4;

const column = (key) => key.replace("_", "-");
const valueText = (value) => has(value) ? String(value) : "–";
const valuesOf = (trials, key) =>
    [...new Set(trials.map((trial) => trial[key]))].sort(order);
const last = ({epochs}) => epochs.at(-1);
const diverged = (trial) => trial.status === "diverged";

// Ascending, what is not known at the end.
function order(a, b) {
  if (!has(a) || !has(b)) return has(b) - has(a);
  return typeof a === "number" && typeof b === "number"
      ? a - b : String(a).localeCompare(String(b));
}

function nameOf(trial, {varied}) {
  const values = varied.map((key) => `${column(key)} ${valueText(trial[key])}`);
  return `Trial ${trial.index}` +
      (values.length === 0 ? "" : ` (${values.join(", ")})`);
}

// The values of a column as a few classes [name, whether a value is of it], of
// many learning rates the powers of ten. Null: there are too many.
function classesOf(trials, key) {
  const values = valuesOf(trials, key);
  if (values.length <= MOST_LOOKS) {
    return values.map((value) => [valueText(value), (v) => v === value]);
  }
  if (key !== "lr") return null;
  const power = (lr) => Math.floor(Math.log10(lr) + 1e-9);
  const powers = [...new Set(values.map(power))];
  return powers.length > MOST_LOOKS ? null : powers.map((p) => [
    `from ${Number(`1e${p}`)}`, (lr) => power(lr) === p]);
}

// Looks by the first column of few classes; lr tells most, a seed least.
function looksOf(report, except) {
  const keys = ["lr", ...report.varied.filter((key) => key !== "seed"), "seed"];
  for (const key of keys) {
    const classes = key !== except && report.varied.includes(key)
        ? classesOf(report.trials, key) : null;
    if (classes !== null) {
      return {look: (trial) => classes.findIndex(([, is]) => is(trial[key])),
              names: classes.map(([name]) => `${column(key)} ${name}`)};
    }
  }
  return {look: () => 0, names: ["trial"]};
}

const looksEntries = (looks, cls) => seriesEntries(
    looks.names.map((name) => ({name, cls})));
const divergedEntries = ({trials}) => trials.some(diverged)
    ? [["", "diverged", svg("g", {transform: "translate(15 7)"}, cross())]]
    : [];

// ---- losses ----

// The axis of these losses; null: there are none.
function lossAxis(losses) {
  const finite = losses.filter(Number.isFinite).sort(order);
  if (finite.length === 0) return null;
  const low = finite[0];
  const high = Math.min(finite.at(-1), Math.max(
      TOP_OF_LEAST * low, TOP_OF_MEDIAN * finite[finite.length >> 1]));
  const log = low > 0 && high > 5 * low;
  return {title: "validation loss", format: number, log,
          ticks: log ? logTicks(low, high) : linearTicks(low, high, 5)};
}

const clippedNote = (axis, losses) => {
  const top = axis.ticks.at(-1);
  return losses.some((loss) => Number.isFinite(loss) && loss > top)
      ? `Losses above ${number(top)} are drawn at the top.` : null;
};

const shownText = ({trials, all_trials}) => trials.length < all_trials
    ? `the best ${number(trials.length)} of ${number(all_trials)} trials`
    : "each trial";

// A trial's losses; where it diverged, an infinite one in the epoch after.
function lossPoints(trial, report) {
  const name = nameOf(trial, report);
  const known = trial.epochs.filter((e) => has(e.validation_loss));
  const points = known.map((e) => ({
    x: e.epoch, y: e.validation_loss,
    label: `${name}, epoch ${e.epoch}: validation loss ` +
        `${number(e.validation_loss)}, accuracy ` +
        percent(e.validation_accuracy, 2)}));
  if (diverged(trial)) {
    points.push({x: trial.epochs_done + 1, y: Infinity,
                 label: `${name}: ${trial.status_text}`});
  }
  return points;
}

const epochColumns = ({varied}) => [
  ["Trial", (row) => String(row.trial.index), true],
  ...varied.map((key) => [
    column(key), (row) => valueText(row.trial[key]), true]),
  ["Epoch", (row) => number(row.epoch), true],
  ["Loss", (row) => number(row.loss), true],
  ["Validation loss", (row) => number(row.validation_loss), true],
  ["Accuracy", (row) => percent(row.train_accuracy, 2), true],
  ["Validation accuracy", (row) => percent(row.validation_accuracy, 2), true]];

function lossChart(report) {
  const looks = looksOf(report);
  const many = report.trials.length > 12 ? "many" : "";
  // The best is drawn above the others.
  const series = report.trials.map((trial) => ({
    name: trial.index, points: lossPoints(trial, report),
    look: looks.look(trial), cls: trial.index === report.best ? "best" : many}))
      .filter((s) => s.points.length > 0).reverse();
  const points = series.flatMap((s) => s.points);
  const losses = points.map((p) => p.y);
  const axis = lossAxis(losses);
  if (axis === null) return null;
  const title = "Validation loss by epoch";
  const stride = report.epoch_stride;
  return lineChart(
      {id: "fig-loss", title, notes: [
        `A line for ${shownText(report)}.`, clippedNote(axis, losses),
        stride > 1 ? `One epoch in ${stride} is shown.` : null]},
      series,
      {title: "epoch", format: number,
       ticks: epochTicks(Math.max(...points.map((p) => p.x)))},
      axis,
      table(title, epochColumns(report),
            report.trials.flatMap((trial) => trial.epochs.map(
                (epoch) => ({trial, ...epoch})))),
      [], [
        ...looksEntries(looks), ...divergedEntries(report),
        ...has(report.best) ? [["best", "the best", svg(
            "path", {class: "line", d: "M1 7H29"})]] : []]);
}

// ---- the learning rate ----

const lrTicks = (values) => values.length <= 8
    ? values : logTicks(values[0], values.at(-1));

function lrChart(report) {
  if (!report.varied.includes("lr")) return null;
  const looks = looksOf(report, "lr");
  const lossOf = (trial) =>
      diverged(trial) ? Infinity : last(trial)?.validation_loss;
  const shown = report.trials.filter(
      (trial) => trial.lr > 0 && has(lossOf(trial)));
  const axis = lossAxis(shown.map(lossOf));
  if (axis === null) return null;
  const series = looks.names.map((name, look) => ({
    name, cls: "scatter",
    points: shown.filter((trial) => looks.look(trial) === look)
        .sort((a, b) => a.lr - b.lr).map((trial) => ({
          x: trial.lr, y: lossOf(trial),
          label: `${nameOf(trial, report)}, ${trial.status_text}` +
              (diverged(trial) ? "" :
                  `: validation loss ${number(lossOf(trial))}`)}))}));
  const title = "Validation loss by learning rate";
  return lineChart(
      {id: "fig-lr", title, notes: [
        "After each trial's last epoch.",
        clippedNote(axis, shown.map(lossOf))]},
      series,
      {title: "lr", ticks: lrTicks(valuesOf(shown, "lr")), format: valueText,
       log: true},
      axis, table(title, trialColumns(report), shown), [],
      [...looksEntries(looks, "scatter"), ...divergedEntries(report)]);
}

// ---- the table ----

// As table() takes them; the fourth is what a column is sorted by.
const trialColumns = (report) => [
  ["Trial", (t) => String(t.index), true, (t) => t.index],
  ...report.varied.map((key) => [
    column(key), (t) => valueText(t[key]),
    typeof report.trials[0][key] === "number", (t) => t[key]]),
  ["Epochs", (t) => number(t.epochs_done), true, (t) => t.epochs_done],
  ["Loss", (t) => number(last(t)?.loss), true, (t) => last(t)?.loss],
  ["Validation loss", (t) => number(last(t)?.validation_loss), true,
   (t) => last(t)?.validation_loss],
  ["Validation accuracy", (t) => percent(last(t)?.validation_accuracy, 2),
   true, (t) => last(t)?.validation_accuracy],
  ["Status", (t) => t.status_text + (t.index === report.best ? ", best" : ""),
   false, (t) => t.status_text]];

// A table whose heads sort it: up, and down when pressed once more.
function sortable(id, caption, columns, rows) {
  const region = table(caption, columns, rows);
  region.querySelector("table").id = id;
  const body = region.querySelector("tbody");
  const lines = [...body.children].map((line, i) => ({line, row: rows[i]}));
  const heads = [...region.querySelectorAll("th")];
  heads.forEach((head, i) => {
    const key = columns[i][3];
    const button = html("button", {type: "button"}, head.textContent);
    button.addEventListener("click", () => {
      const up = head.ariaSort !== "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.ariaSort = up ? "ascending" : "descending";
      lines.sort((a, b) => {
        const [x, y] = [key(a.row), key(b.row)];
        return has(x) && has(y) && !up ? order(y, x) : order(x, y);
      });
      body.append(...lines.map(({line}) => line));
    });
    head.replaceChildren(button);
  });
  return region;
}

const trialsSection = (report) => section("trials", "Trials",
    html("p", {}, `A row for ${shownText(report)}, the best first; a ` +
        "column's head sorts by it."),
    sortable("trials-table", "Trials", trialColumns(report), report.trials));

// ---- how they were run ----

const GROUP_COLUMNS = [
  ["Kind", (g) => g.kind], ["Trials", (g) => number(g.trials), true],
  ["Run as", (g) => g.way], ["Programs", (g) => number(g.programs), true],
  ["Vector", (g) => micros(g.vector_us), true],
  ["Loop", (g) => micros(g.loop_us), true],
  ["Lowering of one", (g) => g.lowering],
  ["Refused", (g) => g.refused.join("; ")]];

// Both ways of a group, as far as they were measured.
const groupBars = (group) => [["vector", group.vector_us],
                              ["loop", group.loop_us]]
    .filter(([, us]) => has(us)).map(([way, us]) => ({
      name: way, note: group.kind, text: micros(us),
      parts: [{name: way, value: us,
               cls: way === group.way ? "color0" : "color5",
               label: `${group.kind}, ${way}: ${micros(us)} for a step of ` +
                   `one model${way === group.way ? ", chosen" : ""}`,
               data: {"data-kind": group.kind, "data-way": way}}]}));

function groupsSection({groups}) {
  if (groups.length === 0) return null;
  const title = "A step of one model by kind of trial";
  const bars = groups.flatMap(groupBars);
  return section("groups", "How the trials were run",
      html("p", {}, "vector: many models in one step; loop: one model a step."),
      bars.length === 0 ? table("Kinds of trials", GROUP_COLUMNS, groups)
          : barChart({id: "fig-groups", title, open: "", notes: [
              "All workers' time for one step of one model, measured."]},
              legend([["color0", "chosen", box()], ["color5", "not", box()]]),
              bars, {title: "µs", format: number},
              table(title, GROUP_COLUMNS, groups)));
}

// ---- the page ----

function factsOf(report) {
  const {trials, best} = report;
  const end = has(best) ? last(trials.find((t) => t.index === best)) : null;
  return [
    has(end?.validation_loss) &&
        [`the best's validation loss, trial ${best}`,
         number(end.validation_loss)],
    has(end?.validation_accuracy) &&
        ["its accuracy", percent(end.validation_accuracy, 2)],
    [report.all_trials === 1 ? "trial" : "trials", number(report.all_trials)],
    ["all in all", seconds(report.seconds)],
    report.model_epochs > 0 &&
        ["an epoch of one model",
         seconds(report.train_seconds / report.model_epochs)]];
}

function main(report) {
  showPage(report, factsOf(report), [
    section("losses", "Losses",
        [report.ended && `Ended early: ${report.ended}.`,
         report.resumed > 0 && `${number(report.resumed)} of the trials were ` +
             "ended by an earlier run.",
         !has(report.best) && "No trial has a finite loss."]
            .filter(Boolean).map((words) => html("p", {}, words)),
        lossChart(report), lrChart(report)),
    trialsSection(report),
    groupsSection(report)]);
}

main(reportOfPage());
