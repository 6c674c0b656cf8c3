'use strict';
// The session under another release, beside the session itself: what differs, message by message, with the rules.

const sameAs = () => JSON.stringify([state.start, state.actions]);
const differenceAt = number => state.beside?.rows.get(number);

// A comparison is of one list of actions; after another action it is gone.
function forgetBeside() {
  if (!state.beside || state.beside.of === sameAs()) return;
  state.beside = null;
  at('apart').replaceChildren();
}

async function compareReleases() {
  pause();
  const start = {...state.start, other: at('against').value};
  if (!await show(start, state.actions)) return;
  say(`playing the session under ${start.other}`);
  try {
    const of = sameAs(), found = await ask('releases', {start, actions: state.actions});
    if (of !== sameAs()) return;
    const rows = new Map(found.differences.filter(each => each.row !== null).map(each => [each.row, each]));
    state.beside = {...found, of, rows};
    at('starting').elements.other.value = start.other;
    keepLink();
    drawRows();
    drawBeside();
    say(`${found.here} and ${found.there}: ${differ(found)}`);
  } catch (wrong) { say(wrong.message, true); }
}
press('releases', compareReleases);

const differ = found => found.count
  ? `${found.count} ${found.count === 1 ? 'step differs' : 'steps differ'}, ${found.equal} are equal`
  : `all ${found.equal} steps are equal`;

function drawBeside() {
  const found = state.beside, made = [element('p', `${found.here} and ${found.there}: ${differ(found)}.`)];
  if (found.count) {
    made.push(element('h3', `They part at ${clock(found.differences[0].at)} s`));
    for (const cause of found.causes) made.push(causeWords(cause));
    if (!found.causes.length) made.push(element('p',
      'No switch of the coordinator explains this step alone: the clients act differently, or the time does.', {className: 'dim'}));
  }
  for (const reason of found.skipped) made.push(element('p', `skipped under ${found.there}: ${reason}`, {className: 'dim'}));
  const columns = element('div', undefined, {className: 'columns'});
  if (found.count) columns.append(...found.sides.map(side => {
    const column = element('div', undefined, {className: 'strips'}), numbers = element('p', undefined, {className: 'counters'});
    numbers.append(...counters(side.counters));
    column.append(element('h3', side.release), strips(side), numbers);
    return column;
  }));
  made.push(columns, ...found.differences.map(differenceBox));
  const more = found.count - found.differences.length;
  if (more) made.push(element('p', `${more} later differences are not shown`, {className: 'dim'}));
  const box = element('div', undefined, {className: 'apart'});
  box.append(...made);
  at('apart').replaceChildren(box);
}

function causeWords(cause) {
  const line = element('p', `Only ${cause.release}: ${cause.says} (`, {className: 'difference', title: cause.switch});
  cause.rules.forEach(([rule, text], place) => line.append(place ? ', ' : '', element('abbr', rule, {title: text})));
  line.append(')');
  return line;
}

// A difference is drawn when it is opened.
function differenceBox(each, place) {
  const box = element('details'), names = each.parts.map(([name]) => name).join(', ');
  const what = each.only ? `only ${each.only}` : names;
  box.append(element('summary', `${clock(each.at)} s, ${each.lane}: ${each.title} (${what})`));
  box.ontoggle = () => {
    if (!box.open || box.children.length > 1) return;
    box.append(sideBySide(each));
    if (each.row !== null) {
      const button = element('button', 'Show in the chart', {type: 'button'});
      button.onclick = () => { at('quiet').checked = true; drawRows(); choose(each.row, true); };
      box.append(button);
    }
  };
  box.open = !place;
  return box;
}

function sideBySide(each) {
  const made = element('div', undefined, {className: 'apart'}), table = element('table'), head = element('tr');
  head.append(element('th', ''), element('th', state.beside.here), element('th', state.beside.there));
  const body = element('tbody'), top = element('thead');
  top.append(head);
  for (const [name, here, there] of each.parts) body.append(row(name, lines(here, there), lines(there, here)));
  table.append(top, body);
  const rules = element('ul');
  rules.append(...each.rules.map(([rule, text]) => element('li', text ? `${rule}: ${text}` : rule)));
  made.append(table);
  for (const one of each.differences) made.append(
    element('p', `One of these rules differs in ${one.release}: ${one.says}`, {className: 'difference', title: one.switch}));
  made.append(rules);
  return made;
}

function lines(mine, others) {
  if (!mine.length) return element('span', 'nothing', {className: others.length ? 'alone' : ''});
  const list = element('ul');
  list.append(...mine.map(text => element('li', text, {className: others.includes(text) ? '' : 'alone'})));
  return list;
}
