// SPDX-License-Identifier: Apache-2.0
// Elements, numbers and scales.
"use strict";

function build(element, attributes, content) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) {
      element.setAttribute(name, value);
    }
  }
  element.append(...content.flat(Infinity).filter((child) => child !== null));
  return element;
}

// An element of HTML or SVG; the content is elements, text, lists of both.
function html(name, attributes = {}, ...content) {
  return build(document.createElement(name), attributes, content);
}
function svg(name, attributes = {}, ...content) {
  const space = "http://www.w3.org/2000/svg";
  return build(document.createElementNS(space, name), attributes, content);
}

const numbers = new Intl.NumberFormat("en", {maximumSignificantDigits: 4});
const has = (value) => value !== null && value !== undefined;
const number = (value) => has(value) ? numbers.format(value) : "–";
const percent = (value, digits = 1) =>
    has(value) ? `${(100 * value).toFixed(digits)} %` : "–";
const micros = (value) => has(value) ? `${number(value)} µs` : "–";

function seconds(value) {
  if (!has(value)) return "–";
  if (value >= 1) return `${number(value)} s`;
  return value >= 1e-3 ? `${number(1e3 * value)} ms` : micros(1e6 * value);
}

const BYTES = ["bytes", "KiB", "MiB", "GiB", "TiB"];
const bytePower = (value) => Math.max(0, Math.min(
    BYTES.length - 1, Math.floor(Math.log2(value) / 10)));
const bytes = (value) => value === 0 ? "0" :
    `${number(value / 1024 ** bytePower(value))} ${BYTES[bytePower(value)]}`;

// `text` in at most `width` pixels of a fixed font of `size`.
function fit(text, width, size) {
  const count = Math.max(1, Math.floor(width / (0.61 * size)));
  return text.length <= count ? text : `${text.slice(0, count - 1)}…`;
}

// About `count` round numbers that enclose low and high.
function linearTicks(low, high, count) {
  if (!(high > low)) {
    const margin = Math.abs(low) / 10 || 1;
    [low, high] = [low - margin, high + margin];
  }
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= rough * 0.999);
  const ticks = [];
  for (let i = Math.floor(low / step + 1e-9); ; ++i) {
    ticks.push(Number((i * step).toPrecision(12)));
    if (i * step >= high - 1e-9 * step) return ticks;
  }
}

// 1, 2 and 5 times powers of ten, or the powers alone, that enclose both.
function logTicks(low, high) {
  const factors = high / low < 1000 ? [1, 2, 5] : [1];
  const all = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high) + 1; ++e) {
    all.push(...factors.map((f) => Number(`${f}e${e}`)));
  }
  const first = all.findLastIndex((tick) => tick <= low);
  const last = all.findIndex((tick) => tick >= high);
  return all.slice(Math.max(first, 0), Math.max(last, first + 1) + 1);
}

// Maps the ends of `domain` to those of `range`, a single value to its middle.
function scale(domain, range, log) {
  const [low, high] = log ? domain.map(Math.log) : domain;
  return (value) => {
    const share = high === low
        ? 0.5 : ((log ? Math.log(value) : value) - low) / (high - low);
    return range[0] + share * (range[1] - range[0]);
  };
}
