'use strict';
// What every page does: wide tables can be scrolled by keys, and each chart is drawn from its data when it comes near the
// view, as far as it is in view. The address keeps what is shown of the charts, as #c1=17&c1.client=one: step 17 of the first chart, one client.

const MARGIN = 500;  // pixels above and below the view that are drawn
const LINE = 18;     // height of a line of the axis, and of folded heartbeats
const NAMES = {routine: 'heartbeats', scale: 'to scale', group: 'group', client: 'client', find: 'find'};

function picture(attributes, inner = '') {
  const made = document.createElement('template');
  made.innerHTML = `<svg>${inner}</svg>`;
  for (const [key, value] of Object.entries(attributes)) made.content.firstChild.setAttribute(key, value);
  return made.content.firstChild;
}
function element(name, text, more = {}) {
  const made = Object.assign(document.createElement(name), more);
  if (text) made.textContent = text;
  return made;
}

// --- the address ---

const shared = new URLSearchParams(location.hash.includes('=') ? location.hash.slice(1) : '');
function remember(key, value) {
  if (value === '' || value === null) shared.delete(key); else shared.set(key, value);
  try { history.replaceState(null, '', '#' + shared); } catch { location.replace('#' + shared); }
}

// --- a chart ---

class Chart {
  constructor(place, number) {
    this.place = place;
    this.key = `c${number}`;
    this.data = JSON.parse(place.querySelector('script').textContent);
    this.texts = [];
    this.picture = place.querySelector('.picture');
    this.panels = place.querySelector('.panels');
    this.only = {routine: '', scale: '', group: '', client: '', find: ''};
    for (const name of Object.keys(this.only)) this.only[name] = shared.get(`${this.key}.${name}`) || '';
    this.drawTools();
    this.drawSheet();
    const marked = this.data.marked, kept = shared.get(this.key);
    this.chosen = kept !== null && this.data.steps[kept] ? Number(kept) : marked >= 0 ? marked : this.data.steps.length - 1;
    this.layOut();
    this.choose(this.chosen, {quiet: true});
    this.picture.addEventListener('scroll', () => this.draw());
    this.picture.addEventListener('keydown', event => this.press(event));
    this.sheet.addEventListener('mouseover', event => this.show(this.under(event) ?? this.chosen));
    this.sheet.addEventListener('mouseleave', () => this.show(this.chosen));
    this.sheet.addEventListener('click', event => {
      const at = this.under(event);
      if (at !== null) this.choose(at);
    });
    new ResizeObserver(() => { this.stay(); this.draw(); }).observe(this.picture);
  }

  // The HTML of a list of pieces.
  html(places) { return places.map(each => this.data.pieces[each]).join(''); }

  // The text of a step, in lower case.
  text(at) { return this.texts[at] ??= this.html(this.data.steps[at][8]).replace(/<[^>]*>/g, ' ').toLowerCase(); }

  // --- controls ---

  drawTools() {
    const {clients, groups, steps} = this.data, tools = this.place.querySelector('.tools');
    const labelled = (text, input) => {
      const label = element('label');
      label.append(`${text} `, input);
      tools.append(label);
      return input;
    };
    const set = (name, value) => {
      this.only[name] = value;
      remember(`${this.key}.${name}`, value);
      this.layOut();
      this.draw();
    };
    const box = (name, text) => {
      const input = element('input', '', {type: 'checkbox', checked: Boolean(this.only[name])});
      input.onchange = () => set(name, input.checked ? '1' : '');
      const label = element('label');
      label.append(input, ` ${text}`);
      tools.append(label);
      input.name = name;
    };
    const routine = steps.filter(step => step[5]).length;
    if (routine) box('routine', `show ${routine.toLocaleString('en')} heartbeats without news`);
    box('scale', 'time to scale');
    for (const [name, all, values] of [['group', 'all groups', groups], ['client', 'all clients', clients]]) {
      if (values.length < 2) continue;
      const select = element('select', '', {name});
      select.append(element('option', all, {value: ''}), ...values.map(value => element('option', brief(value), {value, title: value})));
      select.value = this.only[name];
      select.onchange = () => set(name, select.value);
      labelled(NAMES[name], select);
    }
    const find = labelled('find', element('input', '', {type: 'search', name: 'find', value: this.only.find}));
    find.oninput = () => set('find', find.value.trim());
    this.count = element('span', '', {className: 'dim', role: 'status'});
    tools.append(this.count);
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const here = this.rows.findIndex(row => row.at === this.chosen), steps = this.rows.filter(row => row.at >= 0);
    const place = steps.findIndex(row => row.at === this.chosen);
    const to = {ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: steps.length - 1}[event.key];
    if (to === undefined || (here < 0 && !steps.length)) return;
    event.preventDefault();
    const row = steps[Math.min(Math.max(to, 0), steps.length - 1)];
    if (row) this.choose(row.at, {scroll: true});
  }

  // --- layout ---

  drawSheet() {
    const {width, head, heads, strips, defs} = this.data;
    this.sheet = element('div', '', {className: 'sheet'});
    const top = picture({class: 'heads', width, height: head, 'aria-hidden': 'true'}, heads);
    this.stripHeads = picture({class: 'heads strips', height: head, 'aria-hidden': 'true'});
    this.bands = picture({class: 'bands', width, role: 'img', 'aria-label': 'messages and timers'});
    this.owners = picture({class: 'strips', role: 'img', 'aria-label': 'owners of partitions'});
    this.sheet.append(top, this.stripHeads, this.bands, this.owners);
    this.picture.replaceChildren(this.sheet);
    if (!document.getElementById('good')) {
      const hidden = picture({width: 0, height: 0, style: 'position: absolute', 'aria-hidden': 'true'}, defs);
      document.body.append(hidden);
    }
    if (!strips.length) this.sheet.classList.add('bare');
  }

  // Strips stay in view at the right, unless they would cover more than half of the picture.
  stay() {
    const width = this.columns.length * this.data.strip;
    this.sheet.classList.toggle('stay', width < this.picture.clientWidth / 2);
  }

  shows(at) {
    const {group, client, find} = this.only, step = this.data.steps[at];
    if (group && step[4].length && !step[4].includes(group)) return false;
    if (client && !step[3].includes(client)) return false;
    return !find || this.text(at).includes(find.toLowerCase());
  }

  layOut() {
    const {steps, strips} = this.data, {routine, scale, group, find} = this.only;
    const shown = [];
    for (let at = 0; at < steps.length; at++) if (this.shows(at)) shown.push(at);
    const begin = shown.length ? steps[shown[0]][0] : 0, end = shown.length ? steps[shown.at(-1)][0] : 0;
    const unit = unitOf(end - begin), perMs = scale ? Math.max(shown.length, 20) * 24 / Math.max(end - begin, 1) : 0;
    this.rows = [];
    let y = 4, before = begin, folded = 0, count = 0;
    const add = (row, height) => { this.rows.push({...row, y, height}); y += height; };
    const fold = () => {
      if (folded) add({at: -1, text: `${folded} heartbeat${folded > 1 ? 's' : ''} without news`}, LINE);
      folded = 0;
    };
    for (const at of shown) {
      const step = steps[at];
      if (step[5] && !routine && !find) { folded++; continue; }
      fold();
      const last = Math.floor(step[0] / unit), gap = Math.min((step[0] - before) * perMs, 400);
      if (scale) {
        for (let mark = Math.floor(before / unit) + 1; mark <= last; mark++) {
          const above = gap * (mark * unit - before) / (step[0] - before);
          this.rows.push({at: -1, tick: true, text: clock(mark * unit), y: y + above, height: 0});
        }
        y += gap;
      } else if (last > Math.floor(before / unit)) add({at: -1, tick: true, text: clock(last * unit)}, LINE);
      add({at}, step[1]);
      before = step[0];
      count++;
    }
    fold();
    this.height = y + 6;
    this.columns = [];
    strips.forEach(([of], strip) => { if (!group || of === group) this.columns.push(strip); });
    const width = this.columns.length ? this.columns.length * this.data.strip + 8 : 0;
    for (const svg of [this.stripHeads, this.owners]) {
      svg.setAttribute('width', width);
      svg.style.display = width ? '' : 'none';
    }
    this.stripHeads.innerHTML = this.columns.map((strip, place) => this.moved(place * this.data.strip, 0, strips[strip][1])).join('');
    for (const svg of [this.bands, this.owners]) svg.setAttribute('height', this.height);
    this.sheet.style.gridTemplateColumns = width ? '' : 'max-content';
    this.count.textContent = `${count.toLocaleString('en')} of ${steps.length.toLocaleString('en')} steps`;
    this.drawnFrom = this.drawnTo = -1;
    this.stay();
    this.draw();
  }

  moved(x, y, inner, more = '') { return `<g transform="translate(${x} ${y})"${more}>${inner}</g>`; }

  // --- drawing ---

  draw() {
    const top = this.picture.scrollTop - MARGIN, bottom = top + this.picture.clientHeight + 2 * MARGIN;
    const from = this.first(top), to = this.first(bottom + 1);
    if (from === this.drawnFrom && to === this.drawnTo) return;
    [this.drawnFrom, this.drawnTo] = [from, to];
    const {steps, cells, lanes, width, strip} = this.data, places = new Map(this.columns.map((each, place) => [each, place]));
    const bands = lanes.map(([x, own]) => `<line class="life${own ? ' own' : ''}" x1="${x}" x2="${x}" y1="0" y2="${this.height}"/>`);
    const owners = this.columns.map((_, place) =>
      `<rect class="rail" x="${place * strip + 1}" y="0" width="${strip - 2}" height="${this.height}"/>`);
    for (const {at, y, height, text, tick} of this.rows.slice(from, to)) {
      if (at < 0) {
        bands.push(tick ? `<line class="tick" x1="4" x2="${width - 4}" y1="${y + 9}" y2="${y + 9}"/>` : '');
        bands.push(`<text class="${tick ? 'tick-label label' : 'dim'}" x="12" y="${y + 13}">${text}</text>`);
        continue;
      }
      const step = steps[at], chosen = at === this.chosen ? ' chosen' : '';
      bands.push(this.moved(0, y, this.html(step[6]), ` class="${step[2]}${chosen}" data-at="${at}"`));
      const end = y + height, gap = this.nextStep(end) - end;
      for (const [each, cell] of step[7]) {
        if (!places.has(each)) continue;
        const x = places.get(each) * strip, drawn = this.html(cells[cell]);
        owners.push(this.moved(x, y, drawn));
        if (gap) owners.push(`<g transform="translate(${x} ${end}) scale(1 ${gap / height})">${bare(drawn)}</g>`);
      }
    }
    this.bands.innerHTML = bands.join('');
    this.owners.innerHTML = owners.join('');
  }

  // Where the next step begins: an owner keeps its partition until then.
  nextStep(end) {
    for (let place = this.first(end); place < this.rows.length; place++) {
      if (this.rows[place].at >= 0 && this.rows[place].y >= end) return this.rows[place].y;
    }
    return this.height;
  }

  // The first row that ends below y.
  first(y) {
    let low = 0, high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rows[middle].y + this.rows[middle].height < y) low = middle + 1; else high = middle;
    }
    return low;
  }

  under(event) {
    const band = event.target.closest?.('[data-at]');
    return band ? Number(band.dataset.at) : null;
  }

  choose(at, {scroll = false, quiet = false} = {}) {
    this.chosen = at;
    const row = this.rows.find(each => each.at === at), head = this.data.head;
    if (row && (scroll || quiet)) {
      const view = this.picture, below = row.y + row.height + head - view.clientHeight;
      if (quiet) view.scrollTop = Math.max(row.y - 120, 0);
      else if (row.y < view.scrollTop) view.scrollTop = row.y;
      else if (below > view.scrollTop) view.scrollTop = below;
    }
    this.drawnFrom = -1;
    this.draw();
    this.show(at);
    if (!quiet) remember(this.key, String(at));
  }

  show(at) {
    if (at === this.shown) return;
    this.shown = at;
    const step = this.data.steps[at];
    if (!step) return;
    const states = step[9].map(([state, changed]) =>
      `<div class="group ${changed ? 'changed' : 'same'}">${this.html(this.data.states[state])}</div>`);
    this.panels.innerHTML = `<div class="panel" data-at="${at}">${this.html(step[8])}${states.join('')}</div>`;
  }
}

const brief = name => name.length > 40 ? `${name.slice(0, 39)}…` : name;
const bare = cell => cell.replace(/<text.*?<\/text>/g, '');

// A round number of milliseconds, so that the axis has about twenty marks.
function unitOf(span) {
  for (let power = 1; ; power *= 10) for (const digit of [1, 2, 5]) if (digit * power * 20 >= span) return Math.max(digit * power, 10);
}
function clock(ms) {
  const two = number => String(number).padStart(2, '0'), seconds = Math.floor(ms / 1000);
  const fraction = ms % 1000 ? `.${String(ms % 1000).padStart(3, '0')}` : '';
  return seconds < 60 ? `${seconds}${fraction} s`
    : `${Math.floor(seconds / 3600)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}${fraction}`;
}

// A chart is made when it comes near the view; those that the address mentions are made at once. The chart of the
// address stays in view while others above it are made, until the reader does something.
const charts = [], places = [...document.querySelectorAll('.trace')];
const make = at => charts[at] ??= new Chart(places[at], at + 1);
let linked = places.find((_, at) => shared.has(`c${at + 1}`));
for (const kind of ['wheel', 'pointerdown', 'keydown', 'touchstart']) {
  addEventListener(kind, () => { linked = null; }, {passive: true});
}
const near = new IntersectionObserver(seen => {
  for (const {isIntersecting, target} of seen) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    make(places.indexOf(target));
  }
  linked?.scrollIntoView();
}, {rootMargin: '1500px'});
places.forEach((place, at) => {
  if (!at || [...shared.keys()].some(key => key.split('.')[0] === `c${at + 1}`)) return make(at);
  place.querySelector('.picture').replaceChildren(element('div', '', {className: 'waits'}));
  near.observe(place);
});
linked?.scrollIntoView();

// --- filters: of the rows of tables and the parts of pictures that say what they are about ---

class Filter {
  constructor(tools) {
    const find = element('input', '', {type: 'search', name: 'find', value: shared.get('find') || ''});
    const names = JSON.parse(tools.dataset.names), kind = tools.dataset.kind;
    this.find = find;
    this.count = element('span', '', {className: 'dim', role: 'status'});
    this.parts = [...document.querySelectorAll('[data-about]')].map(part => [part, JSON.parse(part.dataset.about)]);
    const add = (text, input) => { const label = element('label'); label.append(`${text} `, input); tools.append(label); };
    if (names.length > 1) {
      this.only = element('select', '', {name: kind});
      this.only.append(element('option', `all ${kind}s`, {value: ''}),
        ...names.map(value => element('option', brief(value), {value, title: value})));
      this.only.value = shared.get(kind) || '';
      if (this.only.selectedIndex < 0) this.only.value = '';
      this.only.onchange = () => { remember(kind, this.only.value); this.apply(); };
      add(kind, this.only);
    }
    find.oninput = () => { remember('find', find.value.trim()); this.apply(); };
    add('find', find);
    tools.append(this.count);
    this.apply();
  }

  apply() {
    const only = this.only?.value || '', find = this.find.value.trim().toLowerCase();
    let rows = 0, shown = 0;
    for (const [part, about] of this.parts) {
      const isRow = part.tagName === 'TR';
      const fits = (!only || about.includes(only)) && (!isRow || !find || part.textContent.toLowerCase().includes(find));
      part.style.display = fits ? '' : 'none';
      if (isRow) { rows++; shown += fits; }
    }
    this.count.textContent = `${shown.toLocaleString('en')} of ${rows.toLocaleString('en')} rows`;
    for (const part of document.querySelectorAll('.part')) {
      const left = part.querySelectorAll('tr:not([style*="none"])').length;
      part.style.display = left ? '' : 'none';
      part.style.containIntrinsicSize = `auto ${left * LINE * 1.4}px`;
    }
  }
}
for (const tools of document.querySelectorAll('.filter')) new Filter(tools);

// --- tables ---

for (const table of document.querySelectorAll('main table')) {
  if (table.closest('.wide, .part, .picture, .panels')) continue;
  const wide = element('div', '', {className: 'wide'});
  table.replaceWith(wide);
  wide.append(table);
}
function reachable() {
  for (const each of document.querySelectorAll('.wide, pre')) {
    if (each.scrollWidth > each.clientWidth) each.tabIndex = 0; else each.removeAttribute('tabindex');
  }
}
reachable();
addEventListener('resize', reachable);
