// SPDX-License-Identifier: Apache-2.0
// What pages are made of: heading, contents, sections.
"use strict";

function section(id, title, ...content) {
  return html("section", {id, "aria-labelledby": `${id}-title`},
      html("h2", {id: `${id}-title`}, title), content);
}

const percentTick = (value) => `${number(100 * value)} %`;

// Objects in objects as rows [path, value].
function flatten(value, path = []) {
  if (!has(value)) return [];
  if (typeof value !== "object") return [[path.join(" › "), String(value)]];
  const simple = Array.isArray(value) &&
      value.every((item) => typeof item !== "object");
  if (simple) return [[path.join(" › "), value.join(", ")]];
  return Object.entries(value).flatMap(
      ([name, item]) => flatten(item, [...path, name]));
}

const pairs = (caption, value) => table(caption,
    [["Name", (row) => row[0]], ["Value", (row) => row[1]]], flatten(value));

// From 1 to `last` or a little beyond, some 20 at most.
function epochTicks(last) {
  const step = Math.ceil(last / 20);
  return Array.from({length: Math.ceil((last - 1) / step) + 1},
                    (_, i) => 1 + i * step);
}

const reportOfPage = () =>
    JSON.parse(document.getElementById("report").textContent);

// Title, command and `facts`, [name, value] or null; then the sections, what
// was asked for and the machine.
function showPage(report, facts, sections) {
  document.title = `${report.title} – onestep report`;
  const command = html("pre", {class: "command scroll", tabindex: 0,
                               "aria-label": "Command"}, report.command);
  document.getElementById("header").append(
      html("p", {class: "kicker"}, "onestep report"),
      html("h1", {}, report.title),
      html("p", {class: "written"}, `Written ${report.written}`),
      report.command ? command : "",
      html("dl", {class: "facts"}, facts.filter(Boolean).map(
          ([name, value]) =>
              html("div", {}, html("dt", {}, name), html("dd", {}, value)))));
  const all = [
    ...sections.filter(Boolean),
    section("configuration", "Configuration",
            pairs("Configuration", report.config)),
    section("machine", "Machine and versions",
            pairs("Machine and versions", report.machine))];
  document.getElementById("main").append(...all);
  document.getElementById("contents").append(html("ul", {}, all.map(
      (s) => html("li", {}, html("a", {href: `#${s.id}`},
                                 s.querySelector("h2").textContent)))));
}
