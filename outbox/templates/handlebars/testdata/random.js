// Templates made at random, always the same ones for a seed: nested blocks, partials, paths and white space in any combination.
'use strict';

module.exports = function (seed, count) {
  let state = seed;
  const random = n => { // a number below n (mulberry32)
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % n;
  };
  const pick = list => list[random(list.length)];

  const names = ['a', 'b', 'list', 'obj', 'objs', 'gone', 'zero', 'text', 'yes', 'no', 'p', 'q'];
  const path = () => pick([
    () => pick(names), () => pick(names), () => 'this', () => '.', () => '../' + pick(names), () => '../../' + pick(names), () => '..',
    () => '@index', () => '@key', () => '@first', () => '@last', () => '@root.' + pick(names), () => '@../index', () => '@root',
    () => pick(['obj.a', 'obj.list', 'objs.[0].a', 'objs.1.obj', 'list.length', './a', 'this.b', 'p.a', 'q.b', 'obj/a', 'list.[1]']),
  ])();
  const param = () => pick([path, path, path, () => pick(['"a"', "'b'", '0', '1', 'true', 'null', 'undefined']), () => `(lookup ${path()} ${pick(['"a"', '0', '"list"', path()])})`])();
  const blank = () => pick(['', '', '', ' ', '\n', '\n', ' \n', '\n  ', '  ', '\r\n', '\t', '\n\n']);
  const tilde = () => (random(6) ? '' : '~');
  const tag = inside => '{{' + tilde() + inside + tilde() + '}}';
  const params = () => pick(['', '', '', ' as |p|', ' as |p q|', ' as |q p|']);
  const text = () => pick(['x', 'y z', '<b>', '"', '\\{{a}}', '\\\\', '{ ', '', '', 'ä']);

  const body = depth => {
    let out = blank();
    for (let n = random(4) + 1; n > 0; n--) out += node(depth) + blank();
    return out;
  };
  const middle = depth => pick([
    () => '', () => '', () => tag('else') + body(depth), () => tag('^') + body(depth),
    () => tag('else if ' + param()) + body(depth), () => tag('else if ' + param()) + body(depth) + tag('else') + body(depth),
    () => tag('else each ' + param() + params()) + body(depth) + tag('else') + body(depth),
  ])();
  const node = depth => {
    if (depth <= 0) return pick([text, () => tag(path()), () => tag('! c'), () => '{{{' + path() + '}}}.' /* two numbers side by side would be added */])();
    const d = depth - 1;
    return pick([
      text, () => tag(path()), () => tag(path()), () => tag('lookup ' + param() + ' ' + param()), () => tag('!-- c --'),
      () => tag('#if ' + param()) + body(d) + middle(d) + tag('/if'),
      () => tag('#unless ' + param()) + body(d) + pick(['', tag('else') + body(d)]) + tag('/unless'),
      () => tag('#each ' + param() + params()) + body(d) + middle(d) + tag('/each'),
      () => tag('#with ' + param() + params()) + body(d) + middle(d) + tag('/with'),
      () => { const n = pick(names); return tag('#' + n + params()) + body(d) + middle(d) + tag('/' + n); },
      () => { const n = pick(names); return tag('^' + n) + body(d) + pick(['', tag('else') + body(d)]) + tag('/' + n); },
      () => tag('> ' + pick(['p1', 'p2', 'p3']) + pick(['', ' ' + param(), ' a=' + param(), ' ' + path() + ' b=' + param() + ' q=1'])),
      () => { const n = pick(['p1', 'p2', 'none']); return tag('#> ' + n + pick(['', ' ' + param(), ' a=' + param()])) + body(d) + tag('/' + n); },
      () => tag('#*inline ' + pick(['"p1"', '"p2"', '"p4"'])) + plain(d) + tag('/inline'),
      () => tag('#> p4') + body(d) + tag('/p4'),
    ])();
  };
  const plain = depth => body(depth).replace(/\{\{~?#?>.*?\}\}|\{\{~?\/(p\d|none)~?\}\}|\{\{~?#\*.*?\}\}|\{\{~?\/inline~?\}\}/g, ''); // no further partials
  const leaf = { a: 'A<', b: 2, list: [1, 'two', null], obj: { a: 'oa', list: ['l'] }, yes: true, no: false, zero: 0, text: 't\nu', p: { a: 'pa' } };
  const data = { ...leaf, objs: [{ ...leaf, a: 'one' }, { a: '', obj: { b: 'deep' }, list: [] }], q: { b: [3, 4] } };

  const sorted = v => (v && typeof v === 'object' && !Array.isArray(v) // by name, the order in which data without one is repeated here
    ? Object.fromEntries(Object.keys(v).sort().map(k => [k, sorted(v[k])])) : Array.isArray(v) ? v.map(sorted) : v);
  const cases = [];
  while (cases.length < count) {
    const partials = { p1: plain(1), p2: pick(['{{> @partial-block}}', '[\n  {{> @partial-block}}\n]\n', '{{#each list}}{{> @partial-block}}{{/each}}', '{{#with list}}{{> @partial-block ..}}{{/with}}']) + blank(), p3: plain(2) };
    cases.push(['random ' + cases.length, body(3), sorted(data), { partials }]);
  }
  return cases;
};
