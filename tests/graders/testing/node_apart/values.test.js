const { test, describe, it, before, beforeEach, mock } = require('node:test');
const assert = require('node:assert');
const kit = require('./kit.js');
const expected = {
  nothing: undefined, null: null, nan: NaN, zero: -0, infinite: -Infinity, big: 12345678901234567890n,
  holes: [1, , 3], bare: Object.assign(Object.create(null), { a: 1 }),
  map: new Map([['a', new Set([1])], [{ k: 1 }, 2]]), date: new Date(86400000), regex: /a+/giu,
  bytes: Buffer.from('hi'), floats: new Float64Array([1.5, NaN]), plain: new Uint8Array([1, 2]).buffer,
  symbol: Symbol.for('kit'), known: Symbol.iterator, match: 'abc'.match(/(?<first>b)/),
  frozen: { a: [1] }, boxed: Object('text'), lone: '\ud800', proto: JSON.parse('{"__proto__": {"x": 1}, "a": 1}'),
  url: new URL('http://h/p?q=1'), error: new TypeError('t', { cause: new Error('c') }),
  many: new AggregateError([new Error('one')], 'many'),
};
for (const [name, value] of Object.entries(expected)) {
  test(`gives ${name}`, () => assert.deepStrictEqual(kit.give(name), value));
  test(`takes ${name}`, () => assert.strictEqual(kit.same(value), value));
  test(`knows ${name}`, () => assert.deepStrictEqual(kit.kinds(value), [Object.prototype.toString.call(value)]));
}
test('cycle', () => { const o = kit.give('cycle'); assert.strictEqual(o.self, o); });
test('shared', () => { const [a, b] = kit.give('shared'); assert.strictEqual(a, b); });
test('frozen', () => assert.ok(Object.isFrozen(kit.give('frozen')) && Object.isFrozen(kit.give('frozen').a)));
test('same again', () => assert.strictEqual(kit.memo('a'), kit.memo('a')));
test('symbols', () => assert.strictEqual(kit.keyed[kit.kSecret], 7));
test('errors', () => { const e = kit.give('many'); assert.ok(e instanceof AggregateError); assert.strictEqual(e.errors[0].message, 'one'); });
