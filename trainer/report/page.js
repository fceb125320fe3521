// SPDX-License-Identifier: Apache-2.0
// The report's sections, from its JSON; the figures fig-*.
"use strict";

const PHASES = ["forward", "loss", "backward", "update"];

function phaseLegend(names = [...PHASES, "overhead"]) {
  return legend(names.map((name) => [name, name, box()]));
}

// ---- training ----

const EPOCH_COLUMNS = [
  ["Epoch", (e) => number(e.epoch), true],
  ["Loss", (e) => number(e.loss), true],
  ["Validation loss", (e) => number(e.validation_loss), true],
  ["Accuracy", (e) => percent(e.train_accuracy, 2), true],
  ["Validation accuracy", (e) => percent(e.validation_accuracy, 2), true],
  ["Time", (e) => seconds(e.seconds), true],
  ["Per step", (e) => micros(e.us_per_step), true],
  ["Samples per second", (e) => number(e.samples_per_second), true]];

// What `field` is after each epoch, for the fields that are known.
function epochLines(epochs, fields, format) {
  return Object.entries(fields).map(([field, name]) => ({
    name,
    points: epochs.filter((e) => has(e[field])).map((e) => ({
      x: e.epoch, y: e[field],
      label: `Epoch ${e.epoch}, ${name}: ${format(e[field])}`}))}))
      .filter((series) => series.points.length > 0);
}

function epochChart(id, title, epochs, fields, format, tickFormat) {
  const series = epochLines(epochs, fields, format);
  const ys = series.flatMap((s) => s.points.map((p) => p.y));
  if (epochs.length === 0) return html("p", {}, `${title}: no whole epoch.`);
  if (ys.length === 0) return html("p", {}, `${title}: no value is a number.`);
  const last = epochs.at(-1).epoch;
  return lineChart({id, title}, series,
      {title: "epoch", ticks: epochTicks(last), format: number},
      {title: title.toLowerCase(), format: tickFormat,
       ticks: linearTicks(Math.min(...ys), Math.max(...ys), 5)},
      table(`${title} by epoch`, EPOCH_COLUMNS, epochs));
}

function training({epochs, test, ended}) {
  return section("training", "Training",
      ended ? html("p", {id: "ended"}, `The run ${ended}.`) : null,
      html("div", {class: "pair"},
      epochChart("fig-loss", "Loss", epochs,
          {loss: "training", validation_loss: "validation"}, number, number),
      epochChart("fig-accuracy", "Accuracy", epochs,
          {train_accuracy: "training", validation_accuracy: "validation"},
          (v) => percent(v, 2), percentTick)),
      test && html("p", {id: "test"},
          `Test set of ${number(test.rows)} rows: accuracy ` +
          `${percent(test.accuracy, 2)}, loss ${number(test.loss)}.`));
}

// ---- profiles ----

// Without the op, by which a call's label begins.
function shapeOf({op, shape}) {
  return op && shape.startsWith(`${op} `) ? shape.slice(op.length + 1) : shape;
}

const ROW_COLUMNS = [
  ["Worker", (r) => number(r.worker), true],
  ["Row", (r) => r.op || r.kind], ["Phase", (r) => r.phase],
  ["Shape", shapeOf], ["Mean", (r) => micros(r.mean_us), true],
  ["Median", (r) => micros(r.median_us), true],
  ["95th percentile", (r) => micros(r.p95_us), true],
  ["Share", (r) => percent(r.share), true],
  ["GFLOP/s", (r) => number(r.gflops), true],
  ["GB/s", (r) => number(r.gbs), true],
  ["Of roofline", (r) => percent(r.roofline), true],
  ["Implementation", (r) => r.implementation],
  ["Made of", (r) => r.fused_from]];

const profileOf = (report, name) =>
    report.profiles.find((profile) => profile.name === name);
const kindName = (row) => row.kind.replace("_", " ");
const rowName = (row) => row.op || kindName(row);
const rowClass = (row) => PHASES.includes(row.phase) && row.kind === "op"
    ? row.phase : "overhead";
const totalOf = (rows) => rows.reduce((sum, row) => sum + row.mean_us, 0);
const workersOf = (profile) =>
    Object.values(Object.groupBy(profile.rows, (row) => row.worker));
const titleOf = ({name, of_run}) => of_run ? `${name}, as this run` : name;
const barName = (profile, worker) => titleOf(profile) +
    (profile.workers > 1 ? `, worker ${worker}` : "");

// A bar per worker of a profile: µs by phase, then by kind of overhead.
function phaseBars(profile) {
  return workersOf(profile).map((rows) => {
    const name = barName(profile, rows[0].worker);
    const sums = Object.fromEntries(PHASES.map((phase) => [phase, 0]));
    for (const row of rows) {
      const part = rowClass(row) === "overhead" ? kindName(row) : row.phase;
      sums[part] = (sums[part] ?? 0) + row.mean_us;
    }
    const total = totalOf(rows);
    return {name, text: micros(total),
            parts: Object.entries(sums).filter(([, us]) => us !== 0).map(
        ([part, us]) => ({
          name: part, short: part[0], value: us,
          cls: PHASES.includes(part) ? part : "overhead",
          label: `${name}, ${part}: ${micros(us)}, ` +
              `${percent(us / total)} of the step`,
          data: {"data-profile": profile.name, "data-part": part,
                 "data-worker": rows[0].worker}}))};
  });
}

function stepChart(profiles) {
  const bars = profiles.flatMap(phaseBars);
  return barChart({id: "fig-step", title: "One step by phase"}, phaseLegend(),
      bars, {title: "µs per step", format: number},
      table("One step by phase",
            [["Step", (r) => r.bar], ["Part", (r) => r.name],
             ["Time", (r) => micros(r.value), true]],
            bars.flatMap((bar) => bar.parts.map(
                (part) => ({bar: bar.name, ...part})))));
}

// A pair of bars per fused step: the unfused ops it does, and itself. Null when
// the calls that were profiled are not the graph's ops.
function fusionPairs(graph, unfused, fused) {
  const ops = (profile) => profile.rows.filter((row) => row.kind === "op");
  const before = ops(unfused), after = ops(fused);
  const same = before.length === graph.unfused_ops &&
      after.length === graph.steps.length &&
      graph.steps.every((step, i) => step.op === after[i].op);
  if (!same) return null;
  const overhead = (profile) => profile.rows.filter((r) => r.kind !== "op");
  return [
    ...graph.steps.map((step, i) => [
      step.op, step.unfused.map((k) => before[k]), [after[i]]]),
    ["overhead", overhead(unfused), overhead(fused)]];
}

function fusionBars([name, before, after]) {
  const bar = (aside, rows, title, space) => ({
    name: title, aside, space,
    text: micros(totalOf(rows)),
    parts: rows.map((row) => ({
      name: rowName(row), value: row.mean_us, cls: rowClass(row),
      label: `${aside}, ${rowLabel(row)}`,
      data: {"data-profile": aside, "data-op": rowName(row)}}))});
  return [bar("unfused", before, name, -4), bar("fused", after, "", 8)];
}

function fusionChart(graph, unfused, fused) {
  if (!unfused || !fused) return null;
  const pairs = fusionPairs(graph, unfused, fused);
  if (pairs === null) {
    return html("p", {}, "The calls that were profiled are not the graph's " +
        "ops: fused and unfused cannot be compared one by one.");
  }
  const bars = pairs.flatMap(fusionBars);
  return barChart(
      {id: "fig-fusion", title: "Each op, fused against unfused", notes: [
        "Above, the textbook ops; below, the one op that does their work."]},
      phaseLegend(), bars,
      {title: "mean µs per step", format: number},
      table("Each op, fused against unfused", [
        ["Op", ([name]) => name],
        ["Made of", ([, rows]) => rows.map(rowName).join(" + ")],
        ["Unfused", ([, rows]) => micros(totalOf(rows)), true],
        ["Fused", ([, , rows]) => micros(totalOf(rows)), true]], pairs));
}

function profileNotes(p) {
  const change = p.profiled_us / p.undisturbed_us - 1;
  return [
    `${p.lowering}.`,
    `Undisturbed ${micros(p.undisturbed_us)} per step (slices: ` +
        `${number(p.undisturbed_low_us)} to ${micros(p.undisturbed_high_us)}` +
        `), profiled ${micros(p.profiled_us)} ` +
        `(${change < 0 ? "" : "+"}${percent(change)}), mean of ` +
        `${number(p.steps)} steps; taken off each call, as the profiler's: ` +
        `${number(p.clock_ns)} ns.`,
    `This machine's peak: ${number(p.peak_gflops)} GFLOP/s, ` +
        `${number(p.bandwidth_gbs)} GB/s.`,
    p.note];
}

// What is said of a row below its bar.
function rowLabel(row) {
  const rate = has(row.gflops) ? `, ${number(row.gflops)} GFLOP/s` : "";
  const roof = has(row.roofline)
      ? `, ${percent(row.roofline, 0)} of the roofline` : "";
  const from = row.fused_from ? `, made of ${row.fused_from}` : "";
  return `${rowName(row)}${row.phase && ` (${row.phase})`}: ` +
      `${micros(row.mean_us)}, ${percent(row.share)} of the step` +
      `${rate}${roof}${from}`;
}

function opBars(profile) {
  return profile.rows.map((row, i) => ({
    name: rowName(row), note: shapeOf(row),
    aside: [row.phase, profile.workers > 1 ? `worker ${row.worker}` : ""]
        .filter(Boolean).join(", "),
    text: `${micros(row.mean_us)}  ${percent(row.share)}`,
    parts: [{name: rowName(row), value: row.mean_us, cls: rowClass(row),
             label: rowLabel(row),
             data: {"data-index": i, "data-op": row.op,
                    "data-share": row.share}}]}));
}

// What the calls of CUDA took, or why that is not known.
function accountingOf({accounting}) {
  if (!accounting) return [];
  return [html("details", {},
      html("summary", {}, "Calls of CUDA"),
      accounting.note ? html("p", {}, accounting.note) : table(
          `Calls of CUDA in ${number(accounting.steps)} steps, by CUPTI`, [
            ["Call", (c) => c.call], ["Calls", (c) => number(c.calls), true],
            ["Total", (c) => micros(c.total_us), true],
            ["Average", (c) => micros(c.total_us / c.calls), true],
            ["Share", (c) => percent(c.share), true]], accounting.calls))];
}

// All profiles are drawn to the same scale.
function opCharts(profiles) {
  const max = Math.max(
      ...profiles.flatMap((p) => p.rows.map((row) => row.mean_us)));
  return profiles.flatMap((profile, i) => [barChart(
      {id: `fig-ops-${i}`, title: `Each op, ${titleOf(profile)}`,
       notes: profileNotes(profile)},
      phaseLegend(), opBars(profile),
      {title: "mean µs per step", format: number, max},
      table(`Each op, ${profile.name}`, ROW_COLUMNS, profile.rows)),
    accountingOf(profile)]);
}

// ---- sweep ----

const CELL_COLUMNS = [
  ["Approach", cellSeries], ["Batch", (c) => number(c.batch), true],
  ["Per step", (c) => micros(c.us_per_step), true],
  ["Per epoch", (c) => seconds(c.seconds_per_epoch), true],
  ["MFU", (c) => percent(c.mfu), true],
  ["Validation accuracy", (c) => percent(c.validation_accuracy, 2), true],
  ["Blocks", (c) => number(c.blocks), true],
  ["Multiprocessors", (c) => number(c.multiprocessors), true],
  ["Occupancy", (c) => percent(c.occupancy), true],
  ["Utilisation", (c) => percent(c.utilisation), true],
  ["Refused", (c) => c.refused ?? ""]];

// Cells of one line; a peer has the approach alone.
function cellSeries(cell) {
  const more = [cell.fuse === false ? "unfused" : "",
                cell.input === "sparse" ? "sparse" : ""];
  return [cell.approach, ...more.filter(
      (word) => word && !cell.approach.includes(word))].join(", ");
}

function sweepLines(cells, field, format) {
  const known = cells.filter((c) => !c.refused && has(c[field]));
  return Object.entries(Object.groupBy(known, cellSeries)).map(
      ([name, line]) => ({
        name,
        points: line.sort((a, b) => a.batch - b.batch).map((c) => ({
          x: c.batch, y: c[field],
          label: `${name}, batch ${number(c.batch)}: ${format(c[field])}`}))}));
}

function crossings({crossover}) {
  return crossover.map(({cpu, gpu, batch}) => has(batch)
      ? `${gpu} is faster than ${cpu} from batch ${number(batch)} on.`
      : `${gpu} is never faster than ${cpu} here.`);
}

function sweepChart(id, title, sweep, series, y, notes, marks) {
  const batches = [...new Set(series.flatMap(
      (s) => s.points.map((p) => p.x)))].sort((a, b) => a - b);
  return lineChart({id, title, notes}, series,
      {title: "batch", ticks: batches, format: String, log: true}, y,
      table(title, CELL_COLUMNS, [...sweep.cells, ...sweep.peers]), marks);
}

function sweepSection(sweep) {
  const all = [...sweep.cells, ...sweep.peers];
  const times = sweepLines(all, "seconds_per_epoch", seconds);
  const accuracies = sweepLines(all, "validation_accuracy",
                                (v) => percent(v, 2));
  const values = (series) => series.flatMap((s) => s.points.map((p) => p.y));
  const marks = sweep.crossover.map(({batch}) => batch).filter(has);
  const ys = values(times), as = values(accuracies);
  return section("sweep", "Batch sweep",
      html("p", {}, `${sweep.model}, ${number(sweep.rows)} rows of ` +
          `${sweep.data}, ${number(sweep.epochs)} ` +
          `${sweep.epochs === 1 ? "epoch" : "epochs"} each, learning rate ` +
          `${number(sweep.lr)}. ${sweep.note}`),
      ys.length === 0 ? html("p", {}, "No cell ran.") : sweepChart(
          "fig-sweep", "Time per epoch by batch", sweep, times,
          {title: "seconds per epoch", format: seconds, log: true,
           ticks: logTicks(Math.min(...ys), Math.max(...ys))},
          crossings(sweep), marks),
      as.length === 0 ? null : sweepChart(
          "fig-sweep-accuracy", "Accuracy by batch after the same epochs",
          sweep, accuracies,
          {title: "validation accuracy", format: percentTick,
           ticks: linearTicks(Math.min(...as), Math.max(...as), 5)},
          ["A larger batch takes fewer steps, which may cost accuracy."]));
}

// ---- memory ----

function memorySection(memory) {
  const total = memory.total_bytes;
  const max = Math.max(...memory.kinds.map((k) => k.bytes));
  const bars = memory.kinds.map(({kind, bytes: size}) => ({
    name: kind, text: bytes(size),
    parts: [{name: kind, value: size, cls: "memory",
             label: `${kind}: ${bytes(size)}, ${percent(size / total)} of all`,
             data: {"data-kind": kind}}]}));
  return section("memory", "Memory", barChart(
      {id: "fig-memory", title: "Memory by kind", notes: [
        `${bytes(total)} in all, of which ${bytes(memory.arena_bytes)} are ` +
        "the step's arena."]},
      null, bars,
      {title: "size", format: bytes, unit: 1024 ** bytePower(max)},
      table("Memory by kind", [["Kind", (k) => k.kind],
                               ["Bytes", (k) => String(k.bytes), true]],
            memory.kinds)));
}

// ---- the page ----

const onBusy = ({busy}) => busy ? ", on a busy machine" : "";

// Of slices taken in turn; an interval that holds 1 says nothing.
function ratioFact(ratio) {
  if (!ratio) return null;
  const text = (value) => value.toPrecision(3);
  return ratio.low <= 1 && ratio.high >= 1
      ? ["the chain fused against unfused", "no measurable difference"]
      : [`the chain fused, as fast as unfused (${text(ratio.low)} to ` +
             `${text(ratio.high)})${onBusy(ratio)}`,
         `${text(ratio.value)} ×`];
}

function factsOf(report) {
  const ofRun = report.profiles.find((profile) => profile.of_run);
  const last = report.epochs.at(-1);
  return [
    report.test && ["test accuracy", percent(report.test.accuracy, 2)],
    last && ["last epoch", seconds(last.seconds)],
    ofRun && [`one step, ${titleOf(ofRun)}${onBusy(ofRun)}`,
              micros(ofRun.undisturbed_us)],
    ratioFact(report.unfused_over_fused)];
}

function main(report) {
  showPage(report, factsOf(report), [
    training(report),
    report.profiles.length === 0 ? null : section("time",
        "Where the time goes", stepChart(report.profiles),
        (report.refused ?? []).map((why) => html("p", {}, `Not run: ${why}.`)),
        fusionChart(report.graph, profileOf(report, "unfused"),
                    profileOf(report, "fused")),
        opCharts(report.profiles)),
    section("graph", "Graph", graphFigure(report.graph)),
    report.sweep && sweepSection(report.sweep),
    memorySection(report.memory)]);
}

main(reportOfPage());
