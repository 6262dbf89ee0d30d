// The page that attention_view writes: HTML, style and script in one file that asks for nothing else.
#pragma once

/// The maps' JSON goes where @MAPS@ stands.
inline constexpr const char* kPage = R"html(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Attention</title>
<link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2733; --soft: #66717f; --line: #d9dee5; --panel: #f6f8fa; --mark: 31, 98, 176; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14181d; --ink: #e4e8ee; --soft: #98a3b1; --line: #333b46; --panel: #1c2229; --mark: 104, 170, 255; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 24px; max-width: 1180px; background: var(--paper); color: var(--ink);
       font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 22px; margin: 0 0 4px; }
p { margin: 0 0 18px; color: var(--soft); }
.bar { display: flex; flex-wrap: wrap; gap: 8px; align-items: flex-end; margin-bottom: 14px; }
.bar > span { width: 46px; color: var(--soft); align-self: center; }
button { font: inherit; font-size: 13px; color: var(--ink); background: var(--panel); border: 1px solid var(--line);
         border-radius: 8px; padding: 5px 11px; cursor: pointer; }
button:hover, button:focus-visible { border-color: rgb(var(--mark)); outline: none; }
button[aria-pressed=true] { border-color: rgb(var(--mark)); box-shadow: inset 0 0 0 1px rgb(var(--mark)); }
#heads button { display: flex; flex-direction: column; align-items: center; gap: 4px; padding: 6px 8px; }
#heads canvas { width: 56px; height: 56px; image-rendering: pixelated; border-radius: 3px; }
main { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: 20px; }
section { background: var(--panel); border: 1px solid var(--line); border-radius: 12px; padding: 14px; min-width: 0; overflow-x: auto; }
h2 { font-size: 13px; font-weight: 600; color: var(--soft); margin: 0 0 10px; display: flex; justify-content: space-between; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--ink); font-size: 14px; }
svg text.small { font-size: 11px; fill: var(--soft); }
svg .token { cursor: default; }
svg .box { fill: rgba(var(--mark), 0); rx: 5px; }
svg .cell { stroke: var(--panel); stroke-width: 1; fill: rgb(var(--mark)); }
svg .cell.on { stroke: var(--ink); stroke-width: 1.5; }
svg .link { stroke: rgb(var(--mark)); fill: none; pointer-events: none; }
#say { min-height: 1.5em; margin: 0 0 12px; color: var(--ink); font-variant-numeric: tabular-nums; }
#say b { color: rgb(var(--mark)); }
</style>
</head>
<body>
<h1 id="title"></h1>
<p>Choose a layer and a head. Point at a query, a key or a cell to see who looks at whom.</p>
<div class="bar" id="layers"><span>Layer</span></div>
<div class="bar" id="heads"><span>Head</span></div>
<div id="say" aria-live="polite"></div>
<main>
  <section><h2><span>queries</span><span>keys</span></h2><svg id="links" role="img" aria-label="links"></svg></section>
  <section><h2><span>rows: queries, columns: keys</span></h2><svg id="map" role="img" aria-label="heat map"></svg></section>
</main>
<script type="application/json" id="maps">@MAPS@</script>
<script>
'use strict';
const data = JSON.parse(document.getElementById('maps').textContent);
const at = id => document.getElementById(id);
let layer = 0, head = 0;

function make(parent, tag, attributes, text) {
  const inSvg = parent.namespaceURI.endsWith('svg');
  const made = inSvg ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}
const shown = token => token === '' ? '(empty)' : token.trim() === '' ? 'space' : token;
const clipped = token => { const all = [...shown(token)]; return all.length > 13 ? all.slice(0, 12).join('') + '\u2026' : all.join(''); };
const percent = weight => (100 * weight).toFixed(weight < 0.1 ? 1 : 0) + ' %';

/// What a pointer over query q and key k (either may be null) brings out.
function point(q, k) {
  const { queries, keys } = data.layers[layer], weights = data.layers[layer].heads[head];
  const all = q === null && k === null;
  document.querySelectorAll('.link').forEach(link => {
    const w = weights[link.dataset.q][link.dataset.k];
    const on = (q === null || q == link.dataset.q) && (k === null || k == link.dataset.k);
    link.style.opacity = on ? (all ? 0.75 * w : 0.08 + 0.92 * w) : 0;
  });
  document.querySelectorAll('.box').forEach(box => {
    const i = box.dataset.i, query = box.dataset.side === 'q';
    const own = query ? q : k, other = query ? k : q;
    const w = other === null ? 0 : query ? weights[i][other] : weights[other][i];
    const strength = own === null ? w : own == i ? (other === null ? 0.25 : w) : 0;
    box.style.fill = `rgba(var(--mark), ${0.75 * strength})`;
    box.nextSibling.nextSibling.textContent = own === null && other !== null ? percent(w) : '';
  });
  document.querySelectorAll('.cell').forEach(cell =>
    cell.classList.toggle('on', !all && (q === null || q == cell.dataset.q) && (k === null || k == cell.dataset.k)));
  const say = at('say');
  say.textContent = '';
  if (all) return;
  if (q !== null && k !== null) {
    say.append('query ', make(say, 'b', {}, shown(queries[q])), ' gives ', percent(weights[q][k]), ' to key ',
               make(say, 'b', {}, shown(keys[k])));
    return;
  }
  const others = q !== null ? keys : queries;
  const order = others.map((_, i) => i).sort((a, b) =>
    q !== null ? weights[q][b] - weights[q][a] : weights[b][k] - weights[a][k]).slice(0, 5);
  say.append(q !== null ? 'query ' : 'key ', make(say, 'b', {}, shown(q !== null ? queries[q] : keys[k])),
    q !== null ? ' looks at ' : ' is looked at by ',
    order.map(i => `${shown(others[i])} (${percent(q !== null ? weights[q][i] : weights[i][k])})`).join(', '));
}

function pointed(element, q, k) {
  element.addEventListener('mouseenter', () => point(q, k));
  element.addEventListener('mouseleave', () => point(null, null));
}

function drawLinks() {
  const { queries, keys } = data.layers[layer], weights = data.layers[layer].heads[head];
  const row = 26, width = 440, left = 160, right = 280, high = row * Math.max(queries.length, keys.length);
  const svg = at('links');
  svg.replaceChildren();
  svg.setAttribute('viewBox', `0 0 ${width} ${high}`);
  const y = (i, count) => (high - row * count) / 2 + row * (i + 0.5);
  queries.forEach((_, q) => keys.forEach((_, k) => {
    if (weights[q][k] < 0.004) return;
    const from = y(q, queries.length), to = y(k, keys.length), middle = (left + right) / 2;
    make(svg, 'path', { class: 'link', 'data-q': q, 'data-k': k, 'stroke-width': 0.5 + 5 * weights[q][k],
      d: `M${left},${from} C${middle},${from} ${middle},${to} ${right},${to}` });
  }));
  const token = (text, i, count, side) => {
    const query = side === 'q', group = make(svg, 'g', { class: 'token' });
    make(group, 'rect', { class: 'box', 'data-side': side, 'data-i': i, x: query ? 50 : right + 4, width: 106,
      y: y(i, count) - row / 2 + 1, height: row - 2 });
    make(group, 'text', { x: query ? left - 10 : right + 10, y: y(i, count) + 5, 'text-anchor': query ? 'end' : 'start' },
      clipped(text));
    make(group, 'text', { class: 'small', x: query ? 46 : right + 114, y: y(i, count) + 4,
      'text-anchor': query ? 'end' : 'start' });
    pointed(group, query ? i : null, query ? null : i);
  };
  queries.forEach((text, i) => token(text, i, queries.length, 'q'));
  keys.forEach((text, i) => token(text, i, keys.length, 'k'));
}

function drawMap() {
  const { queries, keys } = data.layers[layer], weights = data.layers[layer].heads[head];
  const longest = Math.max(...queries.concat(keys).map(token => clipped(token).length));
  const side = 26, edge = 24 + 8 * longest, svg = at('map');
  svg.replaceChildren();
  const wide = edge + side * keys.length + 6 + 4 * longest;  // the last label leans out
  svg.setAttribute('viewBox', `0 0 ${wide} ${edge + side * queries.length + 6}`);
  svg.style.maxWidth = `${1.3 * wide}px`;
  svg.style.minWidth = `${0.7 * wide}px`;
  keys.forEach((text, k) => {
    const x = edge + side * (k + 0.5) + 5;
    const label = make(svg, 'text', { x, y: edge - 8, transform: `rotate(-60 ${x} ${edge - 8})` }, clipped(text));
    pointed(label, null, k);
  });
  queries.forEach((text, q) => {
    pointed(make(svg, 'text', { x: edge - 8, y: edge + side * (q + 0.5) + 5, 'text-anchor': 'end' }, clipped(text)), q, null);
    keys.forEach((_, k) => {
      const cell = make(svg, 'rect', { class: 'cell', 'data-q': q, 'data-k': k, x: edge + side * k, y: edge + side * q,
        width: side, height: side, 'fill-opacity': 0.04 + 0.96 * weights[q][k] });
      pointed(cell, q, k);
    });
  });
}

function thumbnail(canvas, weights) {
  canvas.width = weights[0].length;
  canvas.height = weights.length;
  const context = canvas.getContext('2d');
  const mark = getComputedStyle(document.documentElement).getPropertyValue('--mark');
  weights.forEach((row, q) => row.forEach((w, k) => {
    context.fillStyle = `rgba(${mark}, ${0.04 + 0.96 * w})`;
    context.fillRect(k, q, 1, 1);
  }));
}

function draw() {
  document.querySelectorAll('#layers button, #heads button').forEach(button => button.remove());
  data.layers.forEach((one, i) => {
    const button = make(at('layers'), 'button', { 'aria-pressed': i === layer }, one.name);
    button.addEventListener('click', () => { layer = i; head = Math.min(head, one.heads.length - 1); draw(); });
  });
  data.layers[layer].heads.forEach((weights, i) => {
    const button = make(at('heads'), 'button', { 'aria-pressed': i === head });
    thumbnail(make(button, 'canvas', {}), weights);
    make(button, 'span', {}, String(i + 1));
    button.addEventListener('click', () => { head = i; draw(); });
  });
  drawLinks();
  drawMap();
  point(null, null);
}

document.title = at('title').textContent = data.title;
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
draw();
</script>
</body>
</html>
)html";
