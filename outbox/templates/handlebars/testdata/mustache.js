// Templates whose results npm mustache is asked for, for the dialect in which templates are Mustache's.
'use strict';

const data = { name: 'Ann', n: 0, empty: '', list: [{ v: 1 }, { v: 2, name: 'Bob' }], deep: { er: { x: 'X' } }, yes: true, no: false, nothing: null };

module.exports = [
  ['value', '{{name}} {{deep.er.x}} {{missing}} {{nothing}}.', data],
  ['unescaped', '{{{h}}} {{&h}} {{h}}', { h: '<&>"' }],
  ['outer names', '{{#list}}{{name}}{{v}} {{/list}}{{#deep}}{{#er}}{{x}}{{name}}{{/er}}{{/deep}}', data],
  ['false values', '{{#n}}n{{/n}}{{#empty}}e{{/empty}}{{#nothing}}x{{/nothing}}{{^n}}N{{/n}}{{^empty}}E{{/empty}}', data],
  ['delimiters', '{{=<% %>=}}<% name %> {{name}} <%={{ }}=%>{{name}}', data],
  ['delimiters that are letters of the language', '{{=| |=}}|name| |#yes|y|/yes| |^no|n|/no| |&name| |! c |.', data],
  ['delimiters on lines', 'a\n  {{=[ ]=}}\n[name]\n[={{ }}=]\nb', data],
  ['delimiters do not reach partials', '{{=<% %>=}}<%> p %>', data, { partials: { p: '{{name}}<% name %>' } }],
  ['partials', '{{> p}}{{> missing}}{{#list}}{{> p}};{{/list}}', data, { partials: { p: '[{{name}}{{v}}]' } }],
  ['indented partial', 'a\n  {{> p}}\nb', { x: 'x\ny', l: [1] }, { partials: { p: '1\n{{{x}}}\n2\n' } }],
  ['lines', 'a\n{{#yes}}\n b\n{{/yes}}\n{{^yes}}\nc\n{{/yes}}\n  {{! d }}\ne', data],
  ['lists of scalars', '{{#l}}{{.}},{{/l}}{{#m}}{{#.}}{{.}}{{/.}};{{/m}}', { l: [1, 'a'], m: [[1, 2], [3]] }],
  ['backslashes are text', 'a\\b \\ c', data],
];
