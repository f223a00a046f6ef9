// Records what promptfoo's own tests ask of assertions and expect of them, without running promptfoo: one JSON object a line.
const fs = require('fs'), path = require('path'), vm = require('vm');
const { stripTypeScriptTypes } = require('node:module');

const [place, ...files] = process.argv.slice(2);
const other = new Proxy(function () {}, {
  get: (_, name) => (name === Symbol.toPrimitive ? () => '' : name === 'then' ? undefined : other), apply: () => other, construct: () => other,
});

// `handleContainsAny` is called for the assertion `contains-any`.
const typeOf = (handler) => handler.slice('handle'.length).replace('IContains', 'Icontains').replace(/Score$/, '').replace(/(?<!^)[A-Z]/g, (letter) => `-${letter}`).toLowerCase();

async function recorded(file) {
  const names = [], waiting = [];
  let needs = [], last = null, number = 0;

  function plain(value) {
    if (value === other || ['function', 'symbol', 'bigint'].includes(typeof value)) { needs.push('code'); return null; }
    if (value === null || typeof value !== 'object') return value;
    if (Array.isArray(value)) return value.map(plain);
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one)]));
  }

  // One assertion over one output. What is asked of its result is what is expected.
  function asked(params, handler) {
    const assertion = { ...params.assertion };
    if (handler) {
      assertion.type = `${params.inverse ? 'not-' : ''}${typeOf(handler)}`;
      assertion.value = params.valueFromScript === undefined ? params.renderedValue : params.valueFromScript;
    }
    const output = handler ? params.outputString : params.providerResponse?.output;
    last = {
      assertion: plain(assertion), output: typeof output === 'string' ? output : JSON.stringify(plain(output) ?? null),
      vars: plain(params.test?.vars ?? {}), seconds: params.latencyMs === undefined ? null : params.latencyMs / 1000,
      cost: plain(params.providerResponse?.cost) ?? null,
    };
    const of = last;
    return new Proxy({}, { get: (_, name) => (name === 'of' ? of : ['then', 'field', 'asks'].includes(name) ? undefined : { of, field: name }) });
  }

  function expected(of, pass) {
    console.log(JSON.stringify({ id: `${path.basename(file, '.test.ts')}:${names.join('/')}#${++number}`, ...of, needs, expected: pass }));
  }

  function expect(said) {
    const of = said?.of, compared = (wanted) => {
      if (of && said.field === undefined && typeof wanted?.pass === 'boolean') expected(of, wanted.pass);
      if (of && said.field === 'pass' && typeof wanted === 'boolean') expected(of, wanted);
    };
    const refused = () => {
      last = null;
      try { if (said !== other) said(); } catch {}
      if (last) expected(last, null);
    };
    const about = {
      toEqual: compared, toStrictEqual: compared, toMatchObject: compared, toBe: compared, toBeTruthy: () => compared(true), toBeFalsy: () => compared(false),
      toThrow: () => typeof said === 'function' && refused(), rejects: { toThrow: () => said?.asks && expected(said.asks, null) },
    };
    return new Proxy(about, { get: (_, name) => about[name] ?? other });
  }
  Object.assign(expect, { stringContaining: () => other, any: () => other, objectContaining: () => other, anything: () => other, stringMatching: () => other });

  const modules = (from) => {
    if (/src\/assertions(\/index)?$/.test(from)) {
      return { runAssertion: (params) => { const result = asked(params); return Object.assign(Promise.resolve(result), { asks: result.of }); } };
    }
    if (/src\/assertions\/\w+$/.test(from)) {
      return new Proxy({}, { get: (_, name) => (String(name).startsWith('handle') ? (params) => asked(params, name) : other) });
    }
    return other;
  };
  // A test that says what a module of theirs returns is not told by the assertion alone.
  const mocked = () => new Proxy({}, { get: () => () => { needs.push('a module that the test replaces'); return mocked(); } });
  const jest = new Proxy({ mocked, spyOn: mocked }, { get: (known, name) => known[name] ?? other });

  const describe = (name, body) => { names.push(name); try { body(); } finally { names.pop(); } };
  const it = (name, body) => waiting.push([[...names, name], body]);
  const each = (take) => (rows) => (name, body) => Array.isArray(rows) && rows.forEach((row, n) => take(`${name} ${n}`, () => (Array.isArray(row) ? body(...row) : body(row))));
  describe.each = each(describe); it.each = each(it); it.skip = describe.skip = () => {};

  const source = stripTypeScriptTypes(fs.readFileSync(file, 'utf8'))
    .replace(/^import\s+\*\s+as\s+(\w+)\s+from\s+('[^']+');/gm, 'const $1 = modules($2);')
    .replace(/^import\s+(\w+)\s+from\s+('[^']+');/gm, 'const $1 = modules($2);')
    .replace(/^import\s+(\{[^}]*\})\s+from\s+('[^']+');/gm, (_, taken, from) => `const ${taken.replace(/\bas\b/g, ':')} = modules(${from});`);
  const hook = () => {};
  vm.runInNewContext(source, {
    modules, jest, expect, describe, it, test: it, beforeEach: hook, afterEach: hook, beforeAll: hook, afterAll: hook, console: { log() {}, error() {} },
    Promise, Object, Array, JSON, Error, process: other, setTimeout, global: other, require: modules,
  });
  for (const [where, body] of waiting) {
    names.splice(0, names.length, ...where);
    needs = [];
    number = 0;
    try { await body(); } catch {}
  }
}

(async () => { for (const file of files) await recorded(path.join(place, file)); })();
