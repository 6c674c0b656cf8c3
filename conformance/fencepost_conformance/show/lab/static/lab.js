'use strict';
// The page of the laboratory; beside.js has the comparison with another release. A session is its start and a list of actions; the server plays the list and returns a view.

const at = id => document.getElementById(id);
const SVG = 'http://www.w3.org/2000/svg';
const state = {
  options: null, start: null, actions: [], view: null, chosen: null, playing: null, busy: false,
  branches: [], machine: '', tour: null, chapter: 0, beside: null,
};

// --- small helpers ---

function element(name, text, more = {}) {
  const made = Object.assign(document.createElement(name), more);
  if (text !== undefined && text !== null) made.textContent = text;
  return made;
}
function drawn(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
function row(...cells) {
  const made = element('tr');
  for (const cell of cells) {
    const td = element('td');
    td.append(...[cell].flat());
    made.append(td);
  }
  return made;
}
const seconds = ms => `${(ms / 1000).toFixed(ms % 1000 ? 3 : 0)} s`;
const clock = ms => (ms / 1000).toFixed(3);
const numbers = list => list.length ? list.join(' ') : 'none';
const copied = value => JSON.parse(JSON.stringify(value));
const colour = (name, view = state.view) => {
  const place = view.clients.findIndex(client => client.name === name);
  return place < 0 ? 0 : place % 10;
};

function say(text, bad = false) {
  at('said').textContent = text;
  at('said').classList.toggle('bad', bad);
}

// --- the session ---

async function ask(path, body) {
  const reply = await fetch(path, {
    method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body),
  });
  const answer = ['trace', 'wire'].includes(path) && reply.ok ? await reply.text() : await reply.json();
  if (!reply.ok) throw new Error(answer.error);
  return answer;
}

// Actions that only run are merged, so that a long play stays one action.
function joined(actions, more) {
  const list = actions.slice();
  for (const action of more) {
    const last = list[list.length - 1];
    if (action.do === 'run' && last && last.do === 'run' && last.ms + action.ms <= 600000) {
      list[list.length - 1] = {do: 'run', ms: last.ms + action.ms};
    } else list.push(action);
  }
  return list;
}

async function show(start, actions) {
  if (state.busy) return false;
  state.busy = true;
  try {
    const view = await ask('view', {start, actions});
    Object.assign(state, {start, actions, view});
    forgetBeside();
    keepLink();
    draw();
    return true;
  } catch (wrong) {
    say(wrong.message, true);
    return false;
  } finally {
    state.busy = false;
  }
}

function keepLink() {
  const {start, actions} = state;
  history.replaceState(null, '', '#' + encoded({start, actions, ...state.beside && {beside: true}}));
}

async function act(...more) {
  const done = await show(state.start, joined(state.actions, more));
  if (done) say(more.map(words).join('; '));
  return done;
}

// Going back keeps what was there as a branch, once another action takes its place.
async function go(length) {
  pause();
  const whole = state.actions;
  if (!whole.length) return;
  keep(whole);
  if (await show(state.start, whole.slice(0, length))) say(`back to action ${length} of ${whole.length}`);
}

function keep(actions) {
  const text = JSON.stringify({start: state.start, actions});
  state.branches = state.branches.filter(each => !text.startsWith(each.text.slice(0, -2)));
  if (!state.branches.some(each => each.text.startsWith(text.slice(0, -2)))) {
    state.branches.push({name: `${actions.length} actions, ${clock(state.view.now)} s`, text});
  }
}

const encoded = value => btoa(unescape(encodeURIComponent(JSON.stringify(value))))
  .replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
const decoded = text => JSON.parse(decodeURIComponent(escape(atob(text.replace(/-/g, '+').replace(/_/g, '/')))));

const message = action => action.message ? `message ${action.message}` : 'the next message';
const SENTENCES = {
  start: a => `${a.client} starts (${a.protocol}${a.static ? ', static' : ''})`,
  stop: a => `${a.client} stops`,
  crash: a => `${a.client} crashes`,
  slow: a => a.ms ? `each poll of ${a.client} takes ${seconds(a.ms)}` : `${a.client} is quick again`,
  freeze: a => `${a.client} freezes for ${seconds(a.ms)}`,
  grow: a => `the topic gets ${a.by > 1 ? `${a.by} partitions` : 'a partition'}`,
  lose: a => `${message(a)} is lost`,
  delay: a => `${message(a)} is delayed by ${seconds(a.ms)}`,
  repeat: a => `${message(a)} arrives twice`,
  'fail-append': () => 'the next append fails',
  move: a => `the coordinator moves, in ${seconds(a.ms)}`,
  timeouts: a => `new timeout: ${Object.entries(a.changes).map(pair => pair.join(' ')).join(', ')}`,
  step: () => 'one step',
  change: () => 'until the next change',
  run: a => `${seconds(a.ms)} pass`,
};
const words = action => SENTENCES[action.do](action);

// --- drawing ---

function draw() {
  const view = state.view;
  at('clock').textContent = `${clock(view.now)} s of virtual time, ${view.actions} actions; ${view.profile}`
    + (view.active ? '' : '; no coordinator') + (view.armed ? '; the next append fails' : '');
  at('back').disabled = at('restart').disabled = !state.actions.length;
  drawMade();
  drawClients();
  drawFlying();
  at('strips').replaceChildren(strips(view));
  at('counters').replaceChildren(...counters(view.counters));
  drawRows();
  drawGroup();
  drawNumbers();
  at('actions').replaceChildren(...state.actions.map(action => element('li', words(action))));
  drawBranches();
}

// The foot says what decides the contents; this part of it changes with the session.
function drawMade() {
  const facts = {seed: state.start.seed, profile: state.start.profile, 'compared with': state.start.other,
    session: `${state.actions.length} actions`};
  for (const name of document.querySelectorAll('.made dt'))
    if (name.textContent in facts) name.nextElementSibling.textContent = facts[name.textContent];
}

function drawClients() {
  const made = state.view.clients.map(client => {
    const button = (text, action) => {
      const one = element('button', text, {type: 'button', ariaLabel: `${text} ${client.name}`});
      one.onclick = () => act(action);
      return one;
    };
    const name = client.name;
    const buttons = client.running ? [
      button('Stop', {do: 'stop', client: name}),
      button('Crash', {do: 'crash', client: name}),
      button('Freeze 30 s', {do: 'freeze', client: name, ms: 30000}),
      client.slow ? button('Normal speed', {do: 'slow', client: name, ms: 0})
        : button('Slow', {do: 'slow', client: name, ms: 8000}),
    ] : [button('Start again', {do: 'start', client: name, protocol: client.protocol, static: client.static})];
    const notes = [client.static ? 'static' : '', client.frozen ? `busy for ${seconds(client.frozen)}` : '', client.ended]
      .filter(Boolean).join(', ');
    const swatch = element('i', name.slice(-1).toUpperCase(), {className: `swatch m${colour(name)}`});
    return row([swatch, name], client.protocol, client.state + (notes ? ` (${notes})` : ''),
      String(client.epoch), numbers(client.owns), buttons);
  });
  at('clients').replaceChildren(...made);
  const used = new Set(state.view.clients.map(client => client.name));
  if (used.has(at('name').value)) {
    for (let number = 1; ; number++) if (!used.has(`c${number}`)) { at('name').value = `c${number}`; break; }
  }
}

function drawFlying() {
  const flying = state.view.flying;
  at('flying').textContent = flying.length
    ? `On its way next: ${flying[0].from} → ${flying[0].to}, ${flying[0].brief}` + (flying.length > 1 ? ` (and ${flying.length - 1} more)` : '')
    : 'No message is on its way.';
  for (const id of ['lose', 'delay', 'repeat']) at(id).disabled = !flying.length;
  at('repeat').disabled = !flying.length || !flying[0].request;
  at('move').disabled = !state.view.active;
}

function strips(view) {
  const high = 18, left = 5, end = Math.max(view.now, 1), list = view.strips;
  const x = ms => left + (100 - left) * ms / end;
  const picture = drawn('svg', {height: list.length * high + 20, role: 'img',
    'aria-label': 'owners of each partition over time'});
  list.forEach((strip, place) => {
    const y = place * high;
    picture.append(drawn('text', {x: 0, y: y + 13, class: 'strip'}, `p${strip.partition}`));
    for (const [from, until, owners] of strip.stretches) {
      const width = x(until) - x(from);
      if (!owners.length) {
        picture.append(drawn('rect', {x: `${x(from)}%`, y: y + 5, width: `${width}%`, height: high - 10, class: 'none'}));
        continue;
      }
      owners.forEach((owner, number) => {
        const height = (high - 3) / owners.length;
        const box = drawn('rect', {x: `${x(from)}%`, y: y + 1 + number * height, width: `${width}%`, height,
          class: `m${colour(owner, view)}`});
        box.append(drawn('title', {}, `${owner}, ${clock(from)} to ${clock(until)} s`));
        picture.append(box);
        if (width > 4 && owners.length === 1) picture.append(
          drawn('text', {x: `${x(from) + .4}%`, y: y + 13, class: 'who'}, owner));
      });
      if (owners.length > 1) picture.append(
        drawn('rect', {x: `${x(from)}%`, y: y + 1, width: `${width}%`, height: high - 3, class: 'clash'}));
    }
  });
  if (!view.now) picture.append(drawn('text', {x: 0, y: list.length * high + 14, class: 'strip'},
    'Start a client or begin a tour, then let time pass.'));
  for (let tick = 0; tick <= 4 && view.now; tick++) picture.append(drawn('text', {
    x: `${x(end * tick / 4)}%`, y: list.length * high + 14, class: 'strip',
    'text-anchor': tick === 4 ? 'end' : 'start'}, `${(end * tick / 4000).toFixed(1)} s`));
  return picture;
}

function counters(counted) {
  const rows = [
    [(counted.unowned_ms / 1000).toLocaleString('en'), 'partition-seconds without an owner (dashed)'],
    [counted.moved, 'partitions moved'],
    [counted.returned, 'given up and taken back'],
    [counted.repeated, 'records processed again'],
    [counted.requests, 'requests'],
  ];
  if (counted.shared_ms) rows.push([seconds(counted.shared_ms), 'with two owners']);
  return rows.flatMap(([value, text], place) => [place ? ', ' : '', element('b', String(value)), ` ${text}`]);
}

const shown = () => state.view.rows.filter(each => !each.quiet || at('quiet').checked);

function drawRows() {
  const lanes = state.view.lanes, list = at('rows');
  const names = element('div', undefined, {className: 'lanes'});
  names.append(...lanes.map(lane => element('span', lane)));
  at('heads').replaceChildren(element('span', 's'), names, element('span', ''));
  const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 60;
  const made = shown().map(each => chartRow(each, lanes));
  for (const message of state.view.flying) made.push(chartRow({
    number: -message.number, at: message.due, kind: 'flying', lane: message.from, from: message.from, to: message.to,
    text: `${message.brief} (on its way)`, message, rules: [], differences: [],
  }, lanes));
  list.replaceChildren(...made);
  if (atEnd) list.scrollTop = list.scrollHeight;
  if (state.chosen !== null) choose(state.chosen, false);
}

function chartRow(each, lanes) {
  const button = element('button', undefined,
    {type: 'button', className: `row ${each.kind}${each.bad ? ' bad' : ''}${differenceAt(each.number) ? ' apart' : ''}`});
  button.dataset.number = each.number;
  const x = lane => `${(Math.max(0, lanes.indexOf(lane)) + .5) / lanes.length * 100}%`;
  const picture = drawn('svg', {'aria-hidden': 'true'});
  for (const lane of lanes) picture.append(drawn('line', {class: 'life', x1: x(lane), x2: x(lane), y1: 0, y2: '100%'}));
  if (each.from) {
    const fate = each.message.fate, lost = fate === 'lost' || fate === 'ignored';
    const place = lane => (lanes.indexOf(lane) + .5) / lanes.length;
    const from = place(each.from), to = place(each.to);
    const end = each.kind === 'flying' || lost ? from + (to - from) * .6 : to, right = end > from;
    picture.append(drawn('line', {x1: `${from * 100}%`, x2: `${end * 100}%`, y1: '50%', y2: '50%',
      class: `arrow ${each.message.request ? '' : 'answer'} ${lost || each.bad ? 'bad' : ''}`}));
    const tip = drawn('svg', {x: `${end * 100}%`, y: '50%', overflow: 'visible'});
    tip.append(lost ? drawn('path', {d: 'M-4 -4 L4 4 M-4 4 L4 -4', class: 'cross'})
      : drawn('path', {d: right ? 'M-7 -4 L0 0 L-7 4 z' : 'M7 -4 L0 0 L7 4 z', class: `tip ${each.bad ? 'bad' : ''}`}));
    picture.append(tip);
  } else picture.append(drawn('circle', {cx: x(each.lane), cy: '50%', r: 4, class: 'mark'}));
  const text = each.from ? each.text : `${each.lane === 'coordinator' && each.kind !== 'act' ? '' : each.lane + ': '}${each.text}`;
  button.append(element('span', clock(each.at), {className: 'at'}), picture, element('span', text, {className: 'text'}));
  button.onclick = () => choose(each.number, true);
  const item = element('li');
  item.append(button);
  return item;
}

const rowOf = number => number < 0
  ? state.view.flying.filter(each => each.number === -number).map(message => ({
    at: message.due, text: `${message.brief} (on its way)`, message, rules: [], differences: []}))[0]
  : state.view.rows.find(each => each.number === number);

function choose(number, focus) {
  const each = rowOf(number);
  state.chosen = each ? number : null;
  for (const other of at('rows').querySelectorAll('[aria-current]')) other.removeAttribute('aria-current');
  if (!each) return;
  const button = at('rows').querySelector(`[data-number="${number}"]`);
  if (button) {
    button.setAttribute('aria-current', 'true');
    if (focus) { button.focus(); button.scrollIntoView({block: 'nearest'}); }
  }
  at('fields').replaceChildren(...details(each));
}

function details(each) {
  const made = [element('h3', each.text)];
  const list = (title, items) => {
    if (!items.length) return;
    const ul = element('ul');
    ul.append(...items.map(item => element('li', item)));
    made.push(element('h3', title), ul);
  };
  if (each.message) {
    const message = each.message, table = element('table'), body = element('tbody');
    const fate = {flying: `arrives at ${clock(message.due)} s`, arrived: `arrived at ${clock(each.at)} s`,
      lost: 'lost', ignored: 'arrived, and nobody listens'}[message.fate];
    made.push(element('p', `Message ${message.number}, ${message.from} → ${message.to}; sent at ${clock(message.sent)} s, ${fate}.`));
    for (const [name, value] of flat(message.fields)) body.append(row(name, value));
    table.append(body);
    made.push(element('h3', `Fields of ${message.api}`), table);
    if (message.fate === 'flying') {
      const buttons = element('div', undefined, {className: 'buttons'});
      for (const [text, action] of [['Lose', {do: 'lose'}], ['Delay 3 s', {do: 'delay', ms: 3000}],
        ...(message.request ? [['Repeat', {do: 'repeat'}]] : [])]) {
        const button = element('button', `${text} this message`, {type: 'button'});
        button.onclick = () => act({...action, message: message.number});
        buttons.append(button);
      }
      made.push(buttons);
    }
  }
  if (each.step) {
    const step = each.step;
    if (!each.message || !each.message.request) made.push(element('p', step.what));
    list('Group afterwards', step.groups);
    list('Answers', step.answers);
    list(step.fate ? `Records (${step.fate})` : 'Records', step.records);
    list('Timers', step.timers);
  }
  const apart = differenceAt(each.number);
  if (apart) made.push(element('h3', `Under ${state.beside.there}`), sideBySide(apart));
  for (const one of each.differences) made.push(element('p', `One of these rules differs in ${one.release}: ${one.says}`,
    {className: 'difference', title: one.switch}));
  list('Rules', each.rules.map(([rule, text]) => text ? `${rule}: ${text}` : rule));
  return made;
}

function flat(value, name = '') {
  if (Array.isArray(value)) {
    if (!value.length || value.every(each => each === null || typeof each !== 'object'))
      return [[name, value.length ? value.join(', ') : 'none']];
    return value.flatMap((each, number) => flat(each, `${name}[${number}]`));
  }
  if (value !== null && typeof value === 'object')
    return Object.entries(value).flatMap(([key, each]) => flat(each, name ? `${name}.${key}` : key));
  return [[name, value === null ? 'null' : String(value)]];
}

function drawGroup() {
  const group = state.view.group, made = [];
  made.push(element('p', group.kind
    ? `${group.name}: ${group.kind} group, ${group.state}; ${group.epochs.map(pair => pair.join(' ')).join(', ')}`
      + (group.notes.length ? `; ${group.notes.join('; ')}` : '')
    : `${group.name}: there is no group yet`));
  if (group.members.length) {
    const table = element('table'), head = element('tr'), body = element('tbody'), top = element('thead');
    head.append(...['member', 'epoch', 'state', 'holds', 'gives up', 'target'].map(text => element('th', text)));
    body.append(...group.members.map(each => row(each.member, each.epochs, each.state, numbers(each.holds),
      numbers(each.gives_up), each.target ? numbers(each.target) : '')));
    top.append(head);
    table.append(top, body);
    const wide = element('div', undefined, {className: 'wide'});
    wide.append(table);
    made.push(wide);
  }
  at('members').replaceChildren(...made);
  drawMachine(group);
}

async function drawMachine(group) {
  if (group.machine !== state.machine) {
    state.machine = group.machine;
    at('machine').replaceChildren();
    if (group.machine) {
      const text = await (await fetch(`machine/${group.machine}.svg`)).text();
      if (group.machine !== state.machine) return;
      const picture = new DOMParser().parseFromString(text, 'image/svg+xml').documentElement;
      picture.querySelector('style').remove();
      at('machine').replaceChildren(document.importNode(picture, true));
    }
  }
  for (const name of at('machine').querySelectorAll('.name')) {
    const now = name.textContent === state.view.group.state;
    for (const one of [name, name.nextElementSibling]) one.classList.toggle('now', now);
    name.previousElementSibling.classList.toggle('now', now);
  }
}

function drawNumbers() {
  at('offsets').replaceChildren(...state.view.offsets.map(each => row(String(each.partition),
    each.committed === null ? 'none' : String(each.committed),
    each.position ? `${each.position[1]} (${each.position[0]})` : 'not read')));
  at('timers').replaceChildren(...state.view.timers.map(each => row(each.lane, each.name, seconds(each.due - state.view.now))));
}

function drawBranches() {
  const choices = [element('option', 'this session', {value: ''}),
    ...state.branches.map((each, place) => element('option', each.name, {value: String(place)}))];
  at('branches').replaceChildren(...choices);
  at('branches').disabled = !state.branches.length;
}

// --- tours and comparison ---

function drawTour() {
  const tour = state.tour;
  at('next').disabled = !tour || state.chapter >= tour.chapters.length;
  if (!tour) { at('chapter').replaceChildren(); return; }
  const made = [element('h2', `${tour.title}, ${state.chapter} of ${tour.chapters.length}`)];
  if (state.chapter) made.push(element('p', tour.chapters[state.chapter - 1].text));
  made.push(element('p', `Statements of the articles (docs/rules/11-articles.md): ${tour.articles}`, {className: 'dim'}));
  at('chapter').replaceChildren(...made);
}

// A chapter is played from the state after the one before it, whatever was done in between.
async function chapter(tour, number) {
  pause();
  if (state.actions.length && JSON.stringify(state.actions) !== JSON.stringify(upTo(tour, number - 1))) keep(state.actions);
  if (!await show(copied(tour.start), upTo(tour, number))) return;
  Object.assign(state, {tour, chapter: number});
  drawTour();
  say(`${tour.title}: chapter ${number} of ${tour.chapters.length}`);
}
const upTo = (tour, number) => tour.chapters.slice(0, Math.max(0, number)).flatMap(each => copied(each.actions));

async function compare() {
  pause();
  say('playing the session under each protocol');
  try {
    const {sides} = await ask('sides', {start: state.start, actions: state.actions});
    at('columns').replaceChildren(...sides.map(side => {
      const column = element('div', undefined, {className: 'strips'});
      const numbers = element('p', undefined, {className: 'counters'});
      numbers.append(...counters(side.counters));
      column.append(element('h3', label(side.protocol)), strips(side), numbers);
      for (const reason of side.skipped) column.append(element('p', `skipped: ${reason}`, {className: 'dim'}));
      return column;
    }));
    say('the same actions under eager, cooperative and KIP-848');
  } catch (wrong) { say(wrong.message, true); }
}
const label = name => ({eager: 'classic, eager', cooperative: 'classic, cooperative', consumer: 'KIP-848'}[name]);

// --- controls ---

const press = (id, what) => { at(id).onclick = what; };
press('begin', () => chapter(state.options.tours.find(each => each.name === at('tours').value), 1));
press('next', () => chapter(state.tour, state.chapter + 1));
press('compare', compare);

function pause() {
  clearInterval(state.playing);
  state.playing = null;
  at('play').setAttribute('aria-pressed', 'false');
  at('play').textContent = 'Play';
}
function play() {
  if (state.playing) { pause(); return; }
  at('play').setAttribute('aria-pressed', 'true');
  at('play').textContent = 'Pause';
  state.playing = setInterval(async () => {
    if (!state.busy && !await act({do: 'run', ms: 250 * Number(at('speed').value)})) pause();
  }, 250);
}
press('step', () => act({do: 'step'}));
press('change', () => act({do: 'change'}));
press('second', () => act({do: 'run', ms: 1000}));
press('play', play);
press('back', () => go(state.actions.length - 1));
press('restart', () => go(0));
press('lose', () => act({do: 'lose'}));
press('delay', () => act({do: 'delay', ms: 3000}));
press('repeat', () => act({do: 'repeat'}));
press('fail-append', () => act({do: 'fail-append'}));
press('move', () => act({do: 'move', ms: 1000}));
press('grow', () => act({do: 'grow'}));
at('quiet').onchange = () => drawRows();
at('starter').onsubmit = event => {
  event.preventDefault();
  act({do: 'start', client: at('name').value.trim(), protocol: at('protocol').value, static: at('static').checked});
};
at('timeouts').onsubmit = event => {
  event.preventDefault();
  act({do: 'timeouts', changes: {[at('timeout').value]: Number(at('timeout-ms').value)}});
};
at('starting').onsubmit = event => {
  event.preventDefault();
  pause();
  const start = {};
  for (const input of at('starting').querySelectorAll('input, select'))
    start[input.name] = input.type === 'number' ? Number(input.value) : input.value;
  if (state.actions.length) keep(state.actions);
  show(start, []).then(done => { if (done) say('a new session'); });
};
press('link', async () => {
  try {
    await navigator.clipboard.writeText(location.href);
    say('the link is copied; it contains the whole session');
  } catch { say('the address of this page is the link; it contains the whole session'); }
});
async function save(path) {
  try {
    const text = await ask(path, {start: state.start, actions: state.actions});
    const link = element('a', undefined, {download: `lab-${path}.jsonl`});
    link.href = URL.createObjectURL(new Blob([text], {type: 'application/jsonl'}));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    const lines = text.split('\n').length - 1;
    const command = path === 'trace' ? 'fencepost replay' : 'fencepost validate';
    say(`saved lab-${path}.jsonl, ${lines} ${lines === 1 ? 'line' : 'lines'}; read it with: ${command} lab-${path}.jsonl`);
  } catch (wrong) { say(wrong.message, true); }
}
press('trace', () => save('trace'));
press('wire', () => save('wire'));
at('branches').onchange = () => {
  const place = at('branches').value;
  if (place === '') return;
  pause();
  const [branch] = state.branches.splice(Number(place), 1), {start, actions} = JSON.parse(branch.text);
  keep(state.actions);
  show(start, actions).then(done => { if (done) say(`branch: ${branch.name}`); });
};
document.addEventListener('keydown', event => {
  const tag = event.target.tagName;
  if (event.ctrlKey || event.metaKey || event.altKey || tag === 'INPUT' || tag === 'SELECT' || tag === 'TEXTAREA') return;
  const keys = {s: 'step', n: 'change', r: 'second', b: 'back', t: 'next', Home: 'restart'};
  if (event.key === ' ' && tag !== 'BUTTON' && tag !== 'SUMMARY') play();
  else if (keys[event.key]) at(keys[event.key]).click();
  else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
    const all = [...at('rows').querySelectorAll('.row')];
    const here = all.findIndex(each => Number(each.dataset.number) === state.chosen);
    const next = all[here < 0 ? all.length - 1 : here + (event.key === 'ArrowDown' ? 1 : -1)];
    if (next) choose(Number(next.dataset.number), true);
  } else return;
  event.preventDefault();
});

function fillForms() {
  const {protocols, timeouts, profiles, bounds} = state.options;
  at('protocol').replaceChildren(...protocols.map(name =>
    element('option', label(name), {value: name})));
  at('protocol').value = 'consumer';
  at('against').replaceChildren(...profiles.map(name => element('option', name, {value: name})));
  at('against').value = state.start.other;
  at('tours').replaceChildren(...state.options.tours.map(tour => element('option', tour.title, {value: tour.name})));
  drawTour();
  at('timeout').replaceChildren(...timeouts.map(name => element('option', name.replace(/_/g, ' '), {value: name})));
  at('starting').replaceChildren(...Object.entries(state.start).map(([name, value]) => {
    const label = element('label', {profile: 'release', other: 'compare with'}[name] || name.replace(/_/g, ' '));
    let input;
    if (bounds[name]) {
      input = element('input', undefined, {type: 'number', min: bounds[name][0], max: bounds[name][1], required: true});
    } else {
      input = element('select');
      input.append(...profiles.map(each => element('option', each, {value: each})));
    }
    input.name = name;
    input.value = value;
    label.append(input);
    return label;
  }));
}

async function begin() {
  state.options = await (await fetch('options')).json();
  await load();
}

async function load() {
  state.start = copied(state.options.start);
  let actions = [], beside = false;
  if (location.hash.length > 1) {
    try { ({start: state.start, actions, beside} = decoded(location.hash.slice(1))); }
    catch { say('the address contains no session; this is a new one', true); }
  }
  if (!await show(state.start, actions)) {
    const reason = at('said').textContent;
    state.start = copied(state.options.start);
    await show(state.start, []);
    say(reason, true);
  }
  fillForms();
  if (beside) await compareReleases();
}
addEventListener('hashchange', () => { pause(); load(); });
begin();
