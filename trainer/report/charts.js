// SPDX-License-Identifier: Apache-2.0
// Lines over an axis, and bars of parts.
"use strict";

const MARKS = [
  "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0", "M-4-4h8v8h-8z", "M0-5.5L5 4H-5z",
  "M0-6L6 0 0 6-6 0z", "M0 5.5L5-4H-5z", "M-5-2H5V2H-5z", "M-2-5H2V5H-2z"];
const COLORS = 6;
const mark = (i) => svg("path", {class: "mark", d: MARKS[i % MARKS.length]});
// Series are told apart by mark and dashes too: no two are alike in all.
const seriesClass = (i) =>
    `series color${i % COLORS} dash${Math.floor(i / COLORS) % 3}`;

// What colours and marks mean: [class, name, what is drawn in 30 x 14].
function legend(entries) {
  return html("ul", {class: "legend"}, entries.map(([cls, name, sample]) =>
      html("li", {}, svg("svg", {class: cls, width: 30, height: 14,
                                 "aria-hidden": true}, sample), name)));
}

// The entries of series in looks of their own.
const seriesEntries = (series) => series.map(({name, cls = ""}, i) => [
  `${seriesClass(i)} ${cls}`, name,
  [svg("path", {class: "line", d: "M1 7H29"}),
   svg("g", {transform: "translate(15 7)"}, mark(i))]]);
const cross = () => svg("path", {class: "cross", d: "M-5-5L5 5M-5 5L5-5"});

const box = () => svg("rect", {class: "bar", x: 1, y: 1, width: 28,
                               height: 12});

// Text in SVG.
const text = (x, y, cls, content, anchor = null) =>
    svg("text", {x, y, class: cls, "text-anchor": anchor}, content);

// The indices of ticks whose labels do not touch, the last one among them;
// `at` in pixels, in order.
function labelled(at, widths) {
  const kept = [];
  for (let i = at.length - 1; i >= 0; --i) {
    const next = kept.at(-1);
    const room = next === undefined ||
        at[next] - at[i] >= (widths[i] + widths[next]) / 2 + 5;
    if (room) kept.push(i);
  }
  return kept;
}

function xAxis(axis, at, top, bottom, width) {
  const labels = axis.ticks.map(axis.format);
  const widths = labels.map((label) => 7 * label.length);
  return svg("g", {class: "axis"},
      axis.ticks.map((tick) => svg("path", {
        class: "grid", "data-x": tick, "data-at": at(tick),
        d: `M${at(tick)} ${top}V${bottom}`})),
      labelled(axis.ticks.map(at), widths).map((i) => text(
          Math.min(Math.max(at(axis.ticks[i]), widths[i] / 2),
                   width - widths[i] / 2),
          bottom + 16, "tick", labels[i], "middle")),
      text(width, bottom + 36, "title", axis.title, "end"));
}

function yAxis(axis, at, left, right) {
  return svg("g", {class: "axis"},
      axis.ticks.map((tick) => [
        svg("path", {class: "grid", "data-y": tick, "data-at": at(tick),
                     d: `M${left} ${at(tick)}H${right}`}),
        text(left - 6, at(tick) + 4, "tick", axis.format(tick), "end")]),
      text(0, 12, "title", axis.title));
}

function drawLines(series, x, y, marks, width) {
  const height = Math.min(380, Math.max(260, 0.5 * width));
  const left = 12 + 7 * Math.max(...y.ticks.map((t) => y.format(t).length));
  const top = 28, bottom = height - 44, right = width - 22;
  const xAt = scale([x.ticks[0], x.ticks.at(-1)], [left + 12, right], x.log);
  const yScale = scale([y.ticks[0], y.ticks.at(-1)], [bottom, top], y.log);
  const yAt = (value) => yScale(Math.min(value, y.ticks.at(-1)));
  const classOf = ({look, cls = ""}, i) => `${seriesClass(look ?? i)} ${cls}`;
  return svg("svg", {viewBox: `0 0 ${width} ${height}`, role: "group"},
      yAxis(y, yAt, left, right + 10),
      xAxis(x, xAt, top, bottom, width),
      marks.map((mark) => svg("path", {
        class: "mark-line", d: `M${xAt(mark)} ${top}V${bottom}`})),
      series.map((s, i) => svg("g", {class: classOf(s, i)},
          svg("path", {class: "line", d: "M" + s.points.map(
              (p) => `${xAt(p.x)} ${yAt(p.y)}`).join("L")}))),
      // Above all lines.
      series.map((s, i) => s.points.map((p) => svg("g", {
        class: `point ${classOf(s, i)}`, "data-series": s.name,
        "data-x": p.x, "data-y": p.y, "data-label": p.label, "data-row": i,
        "data-at": xAt(p.x), transform: `translate(${xAt(p.x)} ${yAt(p.y)})`},
      svg("circle", {class: "halo", r: 11}),
      p.y === Infinity ? cross() : mark(s.look ?? i)))));
}

// Lines through the points {x, y, label} of {name, points, look, cls}. Series
// of one `look`, their own if they have none, are drawn alike but for the class
// `cls`. An axis is {title, ticks, format, log}: its first and last ticks are
// its ends, and what is above those of y is drawn at its top, an infinite y as
// a cross. `marks` are values of x, `entries` the legend's.
function lineChart(options, series, x, y, data, marks = [],
                   entries = seriesEntries(series)) {
  return chart(options, legend(entries),
               (width) => drawLines(series, x, y, marks, width), data);
}

// Name, aside and note of a bar: to its left or, where it is narrow, above it.
function drawName({name, aside, note}, y, room, noteRoom) {
  const rest = room - 8.5 * name.length - 8;
  return [
    svg("text", {x: 0, y: y + 13, class: "name"}, name, aside
        ? svg("tspan", {class: "aside", dx: name ? 8 : 0},
              fit(aside, rest, 11)) : null),
    note ? text(0, y + 28, "note", fit(note, noteRoom, 11)) : null];
}

// A part below 0, as noise can make it, has no length.
const lengthOf = (parts) =>
    parts.reduce((sum, {value}) => sum + Math.max(0, value), 0);

function drawBar(row, r, y, {wide, left, at, width}) {
  const room = wide ? left - 12 : width - 6.5 * row.text.length - 12;
  const barY = wide ? y + 3 : y + (row.note ? 36 : 20);
  const parts = row.parts.map((part, i) => {
    const x = at(lengthOf(row.parts.slice(0, i)));
    const size = at(lengthOf(row.parts.slice(0, i + 1))) - x;
    const inside = row.parts.length > 1 && [part.name, part.short].find(
        (name) => name && 7.5 * name.length + 6 <= size);
    return svg("g", {class: `point ${part.cls}`, "data-label": part.label,
                     "data-row": r, "data-at": x + size / 2,
                     "data-value": part.value, ...part.data},
        svg("rect", {class: "halo", x: x - 2, y: barY - 3, width: size + 4,
                     height: 22}),
        svg("rect", {class: size < 4 ? "bar thin" : "bar", x, y: barY,
                     width: size, height: 16}),
        inside ? text(x + size / 2, barY + 12, "inside", inside, "middle")
               : null);
  });
  const end = at(lengthOf(row.parts));
  return [drawName(row, y, room, wide ? room : width),
          wide ? text(end + 6, barY + 12, "value", row.text)
               : text(width, y + 13, "value", row.text, "end"),
          parts];
}

function drawBars(rows, axis, width) {
  const wide = width >= 640;
  const names = Math.max(...rows.map((row) => row.note ? Infinity :
      8.5 * row.name.length + 7 * (row.aside ?? "").length + 32));
  const left = wide ? Math.min(320, 0.42 * width, names) : 0;
  const right = wide ? width - 110 : width - 12;
  const unit = axis.unit ?? 1;
  const max = axis.max ?? Math.max(...rows.map((row) => lengthOf(row.parts)));
  const ticks = linearTicks(0, (max || 1) / unit,
                            Math.max(2, (right - left) / 110))
      .map((tick) => tick * unit);
  const at = scale([0, ticks.at(-1)], [left + 1, right], false);
  const heightOf = ({note, space = 0}) =>
      space + (wide ? (note ? 38 : 26) : (note ? 62 : 44));
  const top = 4;
  const bottom = rows.reduce((sum, row) => sum + heightOf(row), top) + 2;
  let y = top;
  const bars = rows.map((row, r) => {
    const bar = drawBar(row, r, y, {wide, left, at, width});
    y += heightOf(row);
    return bar;
  });
  return svg("svg", {viewBox: `0 0 ${width} ${bottom + 44}`, role: "group"},
      xAxis({...axis, ticks}, at, wide ? top : bottom - 8, bottom, width),
      bars);
}

// Bars {name, aside, note, text, space, parts}, with `space` pixels more below
// it, and parts {name, short, value, cls, label, data} over an axis {title,
// format, max, unit}: its ticks are round in units and reach max or, if there
// is none, the longest bar.
function barChart(options, key, rows, axis, data) {
  return chart(options, key, (width) => drawBars(rows, axis, width), data);
}
