// SPDX-License-Identifier: Apache-2.0
// Graphviz' pictures of the graph.
"use strict";

// The drawing alone: what could run or be fetched, what names elements of the
// page, and Graphviz' own names of nodes are left out.
function importPicture(source) {
  const root = new DOMParser().parseFromString(source, "image/svg+xml")
      .documentElement;
  for (const element of [root, ...root.querySelectorAll("*")]) {
    if (!["svg", "g", "polygon", "polyline", "path", "ellipse", "text"]
        .includes(element.localName)) {
      element.remove();
      continue;
    }
    for (const {name} of [...element.attributes]) {
      if (/^on|^id$|href$|^style$/.test(name)) element.removeAttribute(name);
    }
  }
  return document.importNode(root, true);
}

// Scrolls `frame` so that `element` is in its middle.
function bringToMiddle(frame, element) {
  const box = element.getBoundingClientRect();
  const view = frame.getBoundingClientRect();
  frame.scrollBy(box.x - view.x + (box.width - view.width) / 2,
                 box.y - view.y + (box.height - view.height) / 2);
}

// Buttons that set how large `picture` is drawn in its frame.
function zoomButtons(name, picture, frame) {
  const natural = picture.viewBox.baseVal.width * 4 / 3;  // of points
  let zoom = 1;
  const set = (wanted) => {
    zoom = Math.min(3, Math.max(0.1, wanted));
    picture.style.width = `${Math.round(natural * zoom)}px`;
  };
  const fitting = () => (frame.clientWidth - 2) / natural;
  const button = (label, title, wanted) => {
    const made = html("button", {type: "button", "aria-label": title}, label);
    made.addEventListener("click", () => set(wanted()));
    return made;
  };
  // All of it, if that can be read.
  onResize(frame, (observer) => {
    observer.disconnect();
    set(Math.max(0.6, Math.min(1, fitting())));
    bringToMiddle(frame, picture.querySelector(".node"));
  });
  return html("div", {class: "buttons"},
      button("−", `${name}: smaller`, () => zoom / 1.25),
      button("+", `${name}: larger`, () => zoom * 1.25),
      button("Whole width", `${name}: whole width`, fitting));
}

// A picture with its buttons, and the frame of group g in it.
function picture(id, name, source) {
  const drawing = importPicture(source);
  drawing.removeAttribute("width");
  drawing.removeAttribute("height");
  drawing.setAttribute("role", "img");
  drawing.setAttribute("aria-label", name);
  const frame = html("div", {id, class: "picture scroll", tabindex: 0,
                             role: "region", "aria-label": name}, drawing);
  const body = html("div", {}, html("h4", {}, name), frame);
  frame.before(zoomButtons(name, drawing, frame));
  const group = (g) => drawing.querySelector(`.group${g}`);
  const show = (g) => {
    for (const other of drawing.querySelectorAll(".cluster")) {
      other.classList.toggle("current", other === group(g));
    }
    bringToMiddle(frame, group(g));
  };
  return {body, show};
}

// Both pictures and a list of the groups, whose buttons show them.
function graphFigure(graph) {
  const pictures = graph.before === null ? [] : [
    picture("graph-before", `Before fusion: ${graph.unfused_ops} ops`,
            graph.before),
    picture("graph-after", `After fusion: ${graph.fused_steps} steps`,
            graph.after)];
  const name = (group) => `${graph.groups.indexOf(group) + 1}: ${group.name}`;
  const button = (group) => {
    if (pictures.length === 0) return name(group);
    const made = html("button", {type: "button"}, `Show ${name(group)}`);
    made.addEventListener("click", () => {
      pictures[0].body.scrollIntoView();
      for (const {show} of pictures) show(graph.groups.indexOf(group));
    });
    return made;
  };
  return figure({id: "fig-graph", title: "The graph before and after fusion",
                 open: "", notes: [
    "A dashed frame holds the ops that become one; its number stays.",
    graph.note && `No pictures: ${graph.note}.`]},
  [phaseLegend(PHASES), ...pictures.map(({body}) => body)],
  table("Ops that became one", [["Group", button], ["Made of", (g) => g.from]],
        graph.groups));
}
