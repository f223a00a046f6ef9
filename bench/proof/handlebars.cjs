// Records what Handlebars' own tests expect, without compiling a template: one JSON object a line.
const fs = require('fs'), path = require('path'), vm = require('vm');

const place = process.argv[2];
const CODE = new Set(['withHelper', 'withHelpers', 'withPartial', 'withPartials', 'withDecorator', 'withDecorators', 'withRuntimeOptions', 'withCompileOptions']);

function plain(value) {
  if (value === null || typeof value !== 'object') return !['function', 'symbol', 'bigint'].includes(typeof value);
  if (!Array.isArray(value) && Object.getPrototypeOf(Object.getPrototypeOf(value) || {})?.constructor?.name !== undefined
      && value.constructor?.name !== 'Object') return false;
  return Object.values(value).every(plain);
}

for (const file of ['basic', 'blocks', 'builtins', 'data', 'subexpressions', 'whitespace-control', 'regressions']) {
  const names = [];
  let number = 0;
  const nested = (name, body) => { names.push(name); try { body(); } catch {} names.pop(); };
  function expectTemplate(template) {
    const told = { template, input: {}, needs: [] };
    const asked = new Proxy({}, {
      get: (_, name) => (...given) => {
        if (name === 'withInput') {
          told.input = given[0] === undefined ? null : given[0];
          if (!plain(given[0])) told.needs.push('functions in the input');
        } else if (CODE.has(name)) told.needs.push(name);
        else if (name === 'toCompileTo' || name === 'toThrow') {
          const { input, ...rest } = told;
          const safe = told.needs.includes('functions in the input') ? {} : input;
          console.log(JSON.stringify({ id: `${file}/${names.join('/')}#${++number}`, ...rest, input: safe, expected: name === 'toThrow' ? null : given[0] }));
        }
        return asked;
      },
    });
    return asked;
  }
  const other = new Proxy(function () {}, { get: (_, name) => name === Symbol.toPrimitive ? () => '' : other, apply: () => other, construct: () => other });
  const context = vm.createContext({
    describe: nested, it: nested, beforeEach() {}, afterEach() {}, expectTemplate, Handlebars: other,
    handlebarsEnv: other, CompilerContext: other, expect: other, equal() {}, shouldThrow() {}, sinon: other, console: { log() {}, error() {} }, global: {}, Error, Object, Map, Set,
  });
  vm.runInContext(fs.readFileSync(path.join(place, 'spec', file + '.js'), 'utf8'), context, { timeout: 5000 });
}
