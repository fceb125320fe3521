// SPDX-License-Identifier: Apache-2.0
// The body of a script that report_test.py runs in the page: calls back with
// what the page shows, and with what is wrong whatever it should show.
"use strict";
const [width, done] = arguments;
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const errors = [];
const check = (right, error) => right || errors.push(error);

// ---- structure ----

function checkStructure() {
  const ids = all("[id]").map((element) => element.id);
  check(new Set(ids).size === ids.length, `ids twice: ${
      ids.filter((id, i) => ids.indexOf(id) !== i)}`);
  check(document.documentElement.lang === "en", "no language");
  check(all("h1").length === 1, "not one h1");
  let level = 1;
  for (const heading of all("h1, h2, h3, h4, h5, h6")) {
    const next = Number(heading.localName[1]);
    check(next <= level + 1 && heading.textContent.trim(),
          `heading ${heading.localName} ${heading.textContent}`);
    level = next;
  }
  for (const figure of all("figure")) {
    const title = document.getElementById(
        figure.getAttribute("aria-labelledby"));
    check(title?.textContent, `${figure.id} has no name`);
    check(figure.querySelector("details tbody tr"),
          `${figure.id} has no table of its data`);
  }
  for (const drawing of all("main svg:not([aria-hidden])")) {
    check(/^(img|group)$/.test(drawing.getAttribute("role")) &&
          drawing.getAttribute("aria-label"), "a drawing without a name");
  }
  for (const button of all("button, summary")) {
    check(button.textContent.trim(), "a button without a name");
  }
  for (const element of all(".scroll")) {
    check(element.tabIndex === 0 && element.getAttribute("aria-label"),
          "what scrolls cannot be reached or has no name");
  }
  for (const link of all("nav a")) {
    check(document.querySelector(link.getAttribute("href")),
          `the contents lead nowhere: ${link.href}`);
  }
  check(document.documentElement.scrollWidth <= width,
        `wider than the window: ${document.documentElement.scrollWidth}`);
}

// ---- contrast, as WCAG 2 has it ----

function luminance(color) {
  const [r, g, b] = color.match(/[\d.]+/g).slice(0, 3).map((part) => {
    const c = part / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function checkContrast(selector, property, wanted) {
  const page = luminance(getComputedStyle(document.body).backgroundColor);
  for (const element of all(selector)) {
    const own = luminance(getComputedStyle(element)[property]);
    const ratio = (Math.max(own, page) + 0.05) / (Math.min(own, page) + 0.05);
    check(ratio >= wanted, `contrast of ${element.localName}.${
        element.getAttribute("class")} ${property}: ${ratio}`);
  }
}

// ---- charts ----

// Texts that leave the drawing or touch one another.
function textProblems(drawing) {
  const frame = drawing.getBoundingClientRect();
  const boxes = all("text", drawing).map((text) => ({
    text: text.textContent, box: text.getBoundingClientRect()}));
  const problems = [];
  boxes.forEach(({text, box}, i) => {
    const inside = box.left >= frame.left - 1 && box.right <= frame.right + 1 &&
        box.top >= frame.top - 2 && box.bottom <= frame.bottom + 2;
    if (!inside) problems.push(`cut off: ${text}`);
    for (const other of boxes.slice(0, i)) {
      const across = Math.min(box.right, other.box.right) -
          Math.max(box.left, other.box.left);
      const down = Math.min(box.bottom, other.box.bottom) -
          Math.max(box.top, other.box.top);
      if (across > 0.5 && down > 3) {
        problems.push(`overlap: ${other.text} | ${text}`);
      }
    }
  });
  return problems;
}

function stateOfChart(plot) {
  const drawing = plot.querySelector("svg");
  const frame = drawing.getBoundingClientRect();
  const points = all("[data-label]", drawing).map((point) => {
    const box = (point.querySelector(".bar") ?? point.querySelector(".halo"))
        .getBoundingClientRect();
    return {...point.dataset, cls: point.getAttribute("class"), left: box.x + box.width / 2 - frame.x,
            top: box.y + box.height / 2 - frame.y, width: box.width};
  });
  const ticks = all(".grid", drawing).map((tick) => ({...tick.dataset}));
  const rows = all("tbody tr", plot.closest("figure")).length;
  return {points, ticks, text: textProblems(drawing), table: {rows}};
}

// ---- pictures ----

function stateOfPicture(frame) {
  const nodes = all(".node polygon", frame).map((box) => ({
    box: box.getBoundingClientRect(),
    op: box.parentNode.querySelector("text").textContent.split(" = ")[1]}));
  const frames = all(".cluster", frame).map((cluster) => {
    const box = cluster.querySelector("polygon").getBoundingClientRect();
    const inside = nodes.filter((node) => node.op && node.box.x > box.x &&
        node.box.right < box.right && node.box.y > box.y &&
        node.box.bottom < box.bottom);
    return {label: cluster.querySelector("text").textContent,
            ops: inside.map((node) => node.op)};
  });
  const others = "script, style, title, image, a, foreignObject";
  check(all(others, frame).length === 0, `${frame.id} has more than a drawing`);
  return {frames};
}

function stateOfTable(table) {
  const texts = (row) => [...row.cells].map((cell) => cell.textContent);
  return {heads: texts(table.tHead.rows[0]),
          rows: [...table.tBodies[0].rows].map(texts)};
}

function report() {
  checkStructure();
  checkContrast("p, h1, h2, h3, td, th, a, .tick, .note, .aside", "color", 4.5);
  checkContrast("svg .tick, svg .note, svg .aside, svg .name", "fill", 4.5);
  checkContrast(".mark, .point:not(.overhead) .bar", "fill", 3);
  const byId = (elements, state) => Object.fromEntries(elements.map(
      (element) => [(element.closest("figure .picture, figure")).id,
                    state(element)]));
  const text = (selector) => document.querySelector(selector).textContent;
  done({errors: [...errors, ...window.problems],
        charts: byId(all(".plot"), stateOfChart),
        pictures: byId(all(".picture"), stateOfPicture),
        tables: Object.fromEntries(all("table[id]").map((table) => [
          table.id, stateOfTable(table)])),
        texts: {title: text("h1"), header: text("header"),
                config: text("#configuration"), machine: text("#machine"),
                training: document.querySelector("#training")?.textContent,
                losses: document.querySelector("#losses")?.textContent}});
}

function whenDrawn() {
  const drawn = all(".plot").every((plot) => plot.dataset.drawn);
  drawn ? requestAnimationFrame(report) : setTimeout(whenDrawn, 20);
}
whenDrawn();
