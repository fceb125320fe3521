// SPDX-License-Identifier: Apache-2.0
// Figures: a drawing whose points are read with a pointer or the arrow keys,
// with the value in words below it and all values as a table.
"use strict";

const HINT = "Point at a value, or press Tab and then the arrow keys.";

// A table; `columns` are [title, text of a row] or, for figures that go to
// the right, [title, text of a row, true].
function table(caption, columns, rows) {
  const align = (column) => ({class: column[2] ? "number" : null});
  const cells = (row) => columns.map(
      (column) => html("td", align(column), column[1](row)));
  return html("div", {class: "scroll", tabindex: 0, role: "region",
                      "aria-label": caption},
      html("table", {},
          html("caption", {}, caption),
          html("thead", {}, html("tr", {}, columns.map(
              (column) => html("th", {scope: "col", ...align(column)},
                               column[0])))),
          html("tbody", {}, rows.map((row) => html("tr", {}, cells(row))))));
}

// A figure without its drawing: caption, notes, then `body`, and the data,
// which is shown at once when `open` is "".
function figure({id, title, notes = [], open = null}, body, data) {
  return html("figure", {id, "aria-labelledby": `${id}-title`},
      html("figcaption", {},
          html("h3", {id: `${id}-title`}, title),
          notes.filter(Boolean).map((note) => html("p", {}, note))),
      body,
      html("details", {open}, html("summary", {}, "Data as a table"), data));
}

// Calls change() when the size of `element` changes, behind the frame in which
// it did: what changes sizes again is no loop then.
function onResize(element, change) {
  const observer = new ResizeObserver(
      () => requestAnimationFrame(() => change(observer)));
  observer.observe(element);
}

// A figure that draw(width) draws, again when its width changes. Its points
// are the elements with data-label, in the rows that data-row numbers.
function chart(options, key, draw, data) {
  const plot = html("div", {class: "plot"});
  const readout = html("output", {class: "readout", "aria-live": "polite"},
                       HINT);
  let drawn = 0;
  onResize(plot, () => {
    const width = Math.floor(plot.clientWidth);
    if (width === drawn || width === 0) return;
    drawn = width;
    const points = [...plot.querySelectorAll("[data-label]")];
    const focused = points.indexOf(document.activeElement);
    plot.replaceChildren(draw(width));
    plot.firstChild.setAttribute("aria-label", options.title);
    followKeys(plot, readout);
    if (focused >= 0) plot.querySelectorAll("[data-label]")[focused].focus();
    plot.dataset.drawn = width;
  });
  return figure(options, [key, plot, readout], data);
}

// The point of `row` that is nearest to `point` across.
function nearest(row, point) {
  const distance = (other) => Math.abs(other.dataset.at - point.dataset.at);
  return row.reduce((a, b) => distance(b) < distance(a) ? b : a);
}

// Where a key leads from `point`; null: the key is not for us.
function neighbour(rows, point, key) {
  const r = rows.findIndex((row) => row.includes(point));
  const row = rows[r];
  const i = row.indexOf(point);
  const above = rows[r - 1], below = rows[r + 1];
  switch (key) {
    case "ArrowLeft": return row[i - 1] ?? above?.at(-1) ?? point;
    case "ArrowRight": return row[i + 1] ?? below?.[0] ?? point;
    case "ArrowUp": return above ? nearest(above, point) : point;
    case "ArrowDown": return below ? nearest(below, point) : point;
    case "Home": return rows[0][0];
    case "End": return rows.at(-1).at(-1);
    default: return null;
  }
}

function followKeys(plot, readout) {
  const points = [...plot.querySelectorAll("[data-label]")];
  const rows = Object.values(Object.groupBy(points, (p) => p.dataset.row));
  const show = (point) => {
    for (const p of points) p.classList.toggle("current", p === point);
    readout.textContent = point.dataset.label;
  };
  points.forEach((point, i) => {
    point.setAttribute("tabindex", i === 0 ? 0 : -1);
    point.setAttribute("role", "img");
    point.setAttribute("aria-label", point.dataset.label);
    point.addEventListener("pointerenter", () => show(point));
    point.addEventListener("focus", () => {
      for (const p of points) p.setAttribute("tabindex", p === point ? 0 : -1);
      show(point);
    });
    point.addEventListener("keydown", (event) => {
      const next = neighbour(rows, point, event.key);
      if (next === null) return;
      event.preventDefault();
      next.focus();
    });
  });
}
