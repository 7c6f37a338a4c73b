// Writes oracle.json: what npm handlebars makes of the templates of cases.js and random.js, and what npm mustache makes of those of
// mustache.js. Run: npm install handlebars@4.7.10 mustache@4 && node generate.js [templates made at random] [seed] [file]
'use strict';
const fs = require('fs');
const path = require('path');
const Handlebars = require('handlebars');
const Mustache = require('mustache');

const [count = 300, seed = 7, file = path.join(__dirname, 'oracle.json')] = process.argv.slice(2);

function handlebars([name, template, data, { partials = {}, variables } = {}]) {
  const env = Handlebars.create();
  env.registerHelper('raw', options => options.fn());
  env.logger.log = () => {};
  keepNull(env);
  const result = { name, template, data, partials, variables };
  try {
    result.output = env.compile(template)(data, { partials: { ...partials }, data: variables });
  } catch (error) {
    if (error instanceof RangeError || error instanceof TypeError) return null; // it crashed
    result.error = error.message.split('\n')[0];
  }
  return result;
}

// keepNull takes away a quirk that is no part of the language: inside a block without a context of its own, such as {{#if}}, null becomes
// an empty object, and {{this}} prints [object Object].
function keepNull(env) {
  for (const name of ['if', 'unless', 'each', 'with', 'blockHelperMissing']) {
    const helper = env.helpers[name];
    env.helpers[name] = function (...args) {
      const options = args[args.length - 1];
      const real = this && typeof this === 'object' && Object.isSealed(this) && !Object.keys(this).length ? null : this;
      const wrapped = f => f && Object.assign((context, o) => f(context === this ? real : context, o), f);
      args[args.length - 1] = { ...options, fn: wrapped(options.fn), inverse: wrapped(options.inverse) };
      return helper.apply(this, args);
    };
  }
}

function mustache([name, template, data, { partials = {} } = {}]) {
  return { name: 'mustache: ' + name, mustache: true, template, data, partials, output: Mustache.render(template, data, partials) };
}

const cases = [
  ...require('./cases.js').map(handlebars),
  ...require('./random.js')(+seed, +count).map(handlebars),
  ...require('./mustache.js').map(mustache),
].filter(c => c);
fs.writeFileSync(file, '[\n' + cases.map(c => JSON.stringify(c)).join(',\n') + '\n]\n');
console.log(cases.length, 'cases,', cases.filter(c => c.error).length, 'of them errors; handlebars', Handlebars.VERSION);
