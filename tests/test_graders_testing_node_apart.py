"""``node --test`` with the submission in another process: honest work holds, what lies does not.

Through the runner and a real solution host, for the two are programs that must agree.
"""

from __future__ import annotations

import shutil

import pytest

from tests.node_pairs import Told, judge_apart

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no node on this machine")

HEAD = """
const { test, describe, it, before, beforeEach, mock } = require('node:test');
const assert = require('node:assert');
"""

KIT = """
class Point {
  constructor(x, y) { this.x = x; this.y = y; }
  get norm() { return Math.hypot(this.x, this.y); }
  set both(value) { this.x = this.y = value; }
  plus(other) { return new Point(this.x + other.x, this.y + other.y); }
  toString() { return `(${this.x}, ${this.y})`; }
  toJSON() { return [this.x, this.y]; }
  *[Symbol.iterator]() { yield this.x; yield this.y; }
  static origin() { return new Point(0, 0); }
  static dimensions = 2;
}
class Point3 extends Point { constructor(x, y, z) { super(x, y); this.z = z; } }
class KitError extends RangeError {
  constructor(message, details) { super(message); this.name = 'KitError'; this.code = 'EKIT'; this.details = details; }
}
class Shape { area() { throw new Error('abstract'); } describe() { return `${this.kind}: ${this.area()}`; } }
class Secret { #value; constructor(value) { this.#value = value; } reveal() { return this.#value; } }
class Stack extends Array { top() { return this[this.length - 1]; } }
const { EventEmitter, once } = require('events');
class Bus extends EventEmitter { say(...words) { this.emit('said', ...words); return this; } }
let started = 0;
module.exports = {
  Point, Point3, KitError, Shape, Secret, Stack, Bus,
  same: (value) => value,
  give: (name) => VALUES[name](),
  kinds: (...values) => values.map((value) => Object.prototype.toString.call(value)),
  add: (a, b) => a + b,
  fail: (message = 'bad') => { throw new KitError(message, { at: 1 }); },
  failWith: (error) => { throw error; },
  async slow(value) { await new Promise((resolve) => setTimeout(resolve, 5)); return value; },
  async failLater() { await null; throw new KitError('late'); },
  map: (items, fn) => items.map((item, at) => fn(item, at)),
  later: (fn, ...given) => void setTimeout(fn, 5, null, ...given),
  async retry(fn, times) { for (let n = 1; ; n += 1) try { return await fn(n); } catch (error) { if (n >= times) throw error; } },
  *count(to) { for (let n = 1; n <= to; n += 1) { const back = yield n; if (back) n = back; } },
  async *stream(to) { for (let n = 1; n <= to; n += 1) { await null; yield n; } },
  sortInPlace: (items) => void items.sort((a, b) => a - b),
  fillLater: async (items) => { await null; items.push(9); },
  tag: (object) => { object.tag = 'x'; },
  counter() { let n = 0; return { up() { n += 1; return this; }, get value() { return n; } }; },
  curry: (a) => (b) => (c) => a + b + c,
  make: (Class, ...given) => new Class(...given),
  isInstance: (value, Class) => value instanceof Class,
  greet: (service, name) => service.greet(name),
  drain: async (source) => { const got = []; for await (const chunk of source) got.push(String(chunk)); return got.join(''); },
  env: (name) => process.env[name],
  cwd: () => process.cwd(),
  roll: () => Math.floor(Math.random() * 6),
  stamp: () => new Date(Date.now()).toISOString(),
  year: () => new Date().getFullYear(),
  load: (text) => { try { return JSON.parse(text); } catch { return null; } },
  say: (text) => console.log(text),
  best: (items) => Math.max(...items),
  exists: (path) => require('fs').existsSync(path),
  fetched: async (url) => (await (await fetch(url)).json()).name,
  delayed: (ms) => new Promise((resolve) => setTimeout(() => resolve('done'), ms)),
  debounce(fn, ms) { let timer; return (...given) => { clearTimeout(timer); timer = setTimeout(() => fn(...given), ms); }; },
  leave: () => process.exit(3),
  start: () => (started += 1),
  memo: ((cache) => (key) => (cache[key] ??= { key }))({}),
  helper: () => 1,
  usesHelper: () => module.exports.helper() + 1,
  kSecret: Symbol('secret'),
  onceSaid: (bus) => once(bus, 'said'),
};
module.exports.keyed = { [module.exports.kSecret]: 7 };
const VALUES = {
  nothing: () => undefined, null: () => null, nan: () => NaN, zero: () => -0, infinite: () => -Infinity,
  big: () => 12345678901234567890n, holes: () => [1, , 3], bare: () => Object.assign(Object.create(null), { a: 1 }),
  map: () => new Map([['a', new Set([1])], [{ k: 1 }, 2]]), date: () => new Date(86400000), regex: () => /a+/giu,
  bytes: () => Buffer.from('hi'), floats: () => new Float64Array([1.5, NaN]), plain: () => new Uint8Array([1, 2]).buffer,
  symbol: () => Symbol.for('kit'), known: () => Symbol.iterator, match: () => 'abc'.match(/(?<first>b)/),
  frozen: () => Object.freeze({ a: Object.freeze([1]) }), cycle: () => { const o = { n: 1 }; o.self = o; return o; },
  boxed: () => Object('text'), lone: () => '\\ud800', proto: () => JSON.parse('{"__proto__": {"x": 1}, "a": 1}'),
  url: () => new URL('http://h/p?q=1'), error: () => new TypeError('t', { cause: new Error('c') }),
  many: () => new AggregateError([new Error('one')], 'many'), shared: () => { const one = [1]; return [one, one]; },
};
"""

VALUES = """
const kit = require('./kit.js');
const expected = {
  nothing: undefined, null: null, nan: NaN, zero: -0, infinite: -Infinity, big: 12345678901234567890n,
  holes: [1, , 3], bare: Object.assign(Object.create(null), { a: 1 }),
  map: new Map([['a', new Set([1])], [{ k: 1 }, 2]]), date: new Date(86400000), regex: /a+/giu,
  bytes: Buffer.from('hi'), floats: new Float64Array([1.5, NaN]), plain: new Uint8Array([1, 2]).buffer,
  symbol: Symbol.for('kit'), known: Symbol.iterator, match: 'abc'.match(/(?<first>b)/),
  frozen: { a: [1] }, boxed: Object('text'), lone: '\\ud800', proto: JSON.parse('{"__proto__": {"x": 1}, "a": 1}'),
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
"""

CLASSES = """
const kit = require('./kit.js');
const { Point, Point3, KitError } = kit;
test('new', () => { const p = new Point(3, 4); assert.strictEqual(p.norm, 5); assert.strictEqual(p.x, 3); });
test('instanceof', () => { const p = new Point3(1, 2, 3); assert.ok(p instanceof Point3 && p instanceof Point); assert.ok(!(new Point(1, 2) instanceof Point3)); });
test('structure', () => {
  assert.deepStrictEqual(new Point(1, 2), new Point(1, 2));
  assert.notDeepStrictEqual(new Point(1, 2), new Point(1, 3));
  assert.throws(() => assert.deepStrictEqual(new Point(1, 2), new Point(2, 2)), assert.AssertionError);
  assert.throws(() => assert.deepStrictEqual(new Point(1, 2), { x: 1, y: 2 }), assert.AssertionError);
  assert.deepEqual(new Point(1, 2), { x: 1, y: 2 });
  assert.deepStrictEqual([{ p: new Point(1, 2) }], [{ p: new Point(1, 2) }]);
  assert.deepStrictEqual({ ...new Point(1, 2) }, { x: 1, y: 2 });
});
test('methods', () => assert.deepStrictEqual(new Point(1, 2).plus(new Point(3, 4)), new Point(4, 6)));
test('set', () => { const p = new Point(1, 2); p.x = 5; p.both = 7; assert.strictEqual(p.y, 7); p.extra = 1; delete p.x; assert.ok(!('x' in p)); assert.deepEqual(Object.keys(p), ['y', 'extra']); });
test('static', () => { assert.deepStrictEqual(Point.origin(), new Point(0, 0)); assert.strictEqual(Point.dimensions, 2); assert.strictEqual(Point3.dimensions, 2); });
test('words', () => { assert.strictEqual(`${new Point(1, 2)}`, '(1, 2)'); assert.strictEqual(JSON.stringify({ p: new Point(1, 2) }), '{"p":[1,2]}'); assert.equal(new Point(1, 2), '(1, 2)'); });
test('iterates', () => assert.deepStrictEqual([...new Point(1, 2)], [1, 2]));
test('named', () => { assert.strictEqual(new Point3(1, 2, 3).constructor, Point3); assert.strictEqual(Point3.name, 'Point3'); assert.strictEqual(Object.getPrototypeOf(Point3), Point); assert.strictEqual(Point.length, 2); });
test('needs new', () => assert.throws(() => Point(1, 2), TypeError));
test('identity', () => { const p = new Point(1, 2); assert.strictEqual(kit.same(p), p); assert.notStrictEqual(new Point(1, 2), p); });
test('private', () => assert.strictEqual(new kit.Secret(5).reveal(), 5));
test('subclass of Array', () => { const s = new kit.Stack(); s.push(1, 2); assert.strictEqual(s.top(), 2); assert.strictEqual(s.length, 2); assert.deepEqual(s, [1, 2]); assert.ok(s instanceof Array); });
test('extends', () => {
  class Square extends kit.Shape { constructor(side) { super(); this.side = side; this.kind = 'square'; } area() { return this.side ** 2; } }
  const square = new Square(3);
  assert.strictEqual(square.area(), 9);
  assert.strictEqual(square.describe(), 'square: 9');
  assert.ok(square instanceof Square && square instanceof kit.Shape);
});
test('closures', () => { const c = kit.counter(); c.up().up(); assert.strictEqual(c.value, 2); assert.strictEqual(c.up(), c); });
test('functions', () => { assert.strictEqual(kit.curry(1)(2)(3), 6); assert.strictEqual(typeof kit.curry, 'function'); assert.strictEqual(kit.add.length, 2); assert.strictEqual(kit.add.call(null, 1, 2), 3); assert.strictEqual(kit.add.bind(null, 1)(4), 5); });
test('keys', () => assert.ok(Object.keys(kit).includes('Point')));
test('has classes of its own', () => { assert.ok(kit.isInstance(new Point(1, 2), Point)); assert.ok(!kit.isInstance({}, Point)); });
"""

ERRORS = """
const kit = require('./kit.js');
test('class', () => assert.throws(() => kit.fail(), kit.KitError));
test('base', () => assert.throws(() => kit.fail(), RangeError));
test('other class', () => assert.throws(() => assert.throws(() => kit.fail(), TypeError)));
test('message', () => assert.throws(() => kit.fail('odd'), /odd/));
test('object', () => assert.throws(() => kit.fail(), { name: 'KitError', code: 'EKIT', message: 'bad', details: { at: 1 } }));
test('function', () => assert.throws(() => kit.fail(), (error) => error instanceof kit.KitError && error.details.at === 1));
test('rejects', () => assert.rejects(kit.failLater(), kit.KitError));
test('rejects in time', () => assert.rejects(async () => { await kit.failLater(); }, { message: 'late' }));
test('own error', () => { const mine = new Error('mine'); assert.throws(() => kit.failWith(mine), (error) => error === mine); });
test('own class', () => { class Mine extends Error {} assert.throws(() => kit.map([1], () => { throw new Mine('m'); }), Mine); });
test('no error', () => assert.throws(() => kit.failWith('text'), (thrown) => thrown === 'text'));
test('made here', () => { const e = new kit.KitError('x'); assert.ok(e instanceof kit.KitError && e instanceof Error); assert.strictEqual(e.code, 'EKIT'); });
test('type', () => assert.throws(() => kit.add.nothing.more, TypeError));
test('exits', () => assert.throws(() => kit.leave(), /process.exit/));
"""

CALLS = """
const kit = require('./kit.js');
const { Readable } = require('node:stream');
test('callbacks', () => assert.deepStrictEqual(kit.map([1, 2], (item, at) => item * 10 + at), [10, 21]));
test('builtin callbacks', () => assert.deepStrictEqual(kit.map(['1', '2'], Number), [1, 2]));
test('later', (t, done) => { kit.later((error, value) => { assert.ifError(error); assert.strictEqual(value, 'v'); done(); }, 'v'); });
test('promise', async () => { assert.strictEqual(await kit.slow(4), 4); assert.ok(kit.slow(1) instanceof Promise); });
test('then', () => kit.slow(4).then((value) => assert.strictEqual(value, 4)));
test('all', async () => assert.deepStrictEqual(await Promise.all([kit.slow(1), kit.slow(2)]), [1, 2]));
test('async callbacks', async () => { let n = 0; assert.strictEqual(await kit.retry(async () => { n += 1; if (n < 3) throw new Error('again'); return 'ok'; }, 5), 'ok'); assert.strictEqual(n, 3); });
test('mocks', () => { const fn = mock.fn((x) => x + 1); assert.deepStrictEqual(kit.map([1, 2], fn), [2, 3]); assert.strictEqual(fn.mock.callCount(), 2); assert.deepStrictEqual(fn.mock.calls[1].arguments, [2, 1]); });
test('generators', () => { assert.deepStrictEqual([...kit.count(3)], [1, 2, 3]); const g = kit.count(9); g.next(); assert.deepStrictEqual(g.next(5), { value: 6, done: false }); assert.strictEqual(g.return(1).done, true); });
test('async iterators', async () => { const got = []; for await (const n of kit.stream(3)) got.push(n); assert.deepStrictEqual(got, [1, 2, 3]); });
test('changes arguments', () => { const items = [3, 1, 2]; kit.sortInPlace(items); assert.deepStrictEqual(items, [1, 2, 3]); const o = {}; kit.tag(o); assert.deepStrictEqual(o, { tag: 'x' }); });
test('changes arguments later', async () => { const items = [1]; await kit.fillLater(items); assert.deepStrictEqual(items, [1, 9]); });
test('emitters', async () => {
  const bus = new kit.Bus();
  const heard = [];
  bus.on('said', (...words) => heard.push(words));
  assert.strictEqual(bus.say('a', 1), bus);
  assert.deepStrictEqual(heard, [['a', 1]]);
  assert.ok(bus instanceof require('events'));
  const waited = require('events').once(bus, 'said');
  bus.say('b');
  assert.deepStrictEqual(await waited, ['b']);
  assert.strictEqual(bus.listenerCount('said'), 1);
});
test('own emitter', async () => { const own = new (require('events'))(); setTimeout(() => own.emit('said', 5), 5); assert.deepStrictEqual(await kit.onceSaid(own), [5]); });
test('own class', () => { class Fake { constructor() { this.word = 'hi'; } greet(name) { return `${this.word} ${name}`; } } assert.strictEqual(kit.greet(new Fake(), 'x'), 'hi x'); });
test('own object', () => { const log = []; assert.strictEqual(kit.greet({ word: 'yo', greet(name) { log.push(name); return this.word; } }, 'x'), 'yo'); assert.deepStrictEqual(log, ['x']); });
test('makes own class', () => { class Own { constructor(a) { this.a = a; } } assert.strictEqual(kit.make(Own, 3).a, 3); assert.ok(kit.make(Map) instanceof Map); });
test('own stream', async () => assert.strictEqual(await kit.drain(Readable.from(['a', 'b'])), 'ab'));
test('timer', async () => assert.strictEqual(await kit.delayed(10), 'done'));
"""

MOCKS = """
const kit = require('./kit.js');
const fs = require('fs');
test('roll', (t) => { t.mock.method(Math, 'random', () => 0.5); assert.strictEqual(kit.roll(), 3); });
test('stamp', (t) => { t.mock.method(Date, 'now', () => 0); assert.strictEqual(kit.stamp(), '1970-01-01T00:00:00.000Z'); });
test('load', (t) => { t.mock.method(JSON, 'parse', () => { throw new Error('broken'); }); assert.strictEqual(kit.load('1'), null); });
test('restored', () => assert.strictEqual(kit.load('1'), 1));
test('max is asked once', (t) => { const max = t.mock.method(Math, 'max'); assert.strictEqual(kit.best([1, 3, 2]), 3); assert.strictEqual(max.mock.callCount(), 1); });
test('say', (t) => { const log = t.mock.method(console, 'log', () => {}); kit.say('x'); assert.deepStrictEqual(log.mock.calls[0].arguments, ['x']); });
test('fs', (t) => { t.mock.method(fs, 'existsSync', () => true); assert.strictEqual(kit.exists('/nowhere'), true); });
test('fetch', async () => {
  const { fetch } = globalThis;
  globalThis.fetch = async (url) => ({ ok: true, json: async () => ({ name: url }) });
  try { assert.strictEqual(await kit.fetched('u'), 'u'); } finally { globalThis.fetch = fetch; }
});
test('a Response', async () => { globalThis.fetch = async () => new Response('{"name": "n"}'); assert.strictEqual(await kit.fetched('u'), 'n'); });
test('timers', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const fn = t.mock.fn();
  const slow = kit.debounce(fn, 1000);
  slow(1);
  t.mock.timers.tick(999);
  slow(2);
  t.mock.timers.tick(1000);
  assert.deepStrictEqual(fn.mock.calls.map((call) => call.arguments), [[2]]);
});
test('the date', (t) => { t.mock.timers.enable({ apis: ['Date'], now: new Date('2001-02-03') }); assert.strictEqual(kit.year(), 2001); });
test('its own', (t) => { t.mock.method(kit, 'helper', () => 41); assert.strictEqual(kit.usesHelper(), 42); });
test('its own is restored', () => assert.strictEqual(kit.usesHelper(), 2));
test('its methods', (t) => { const plus = t.mock.method(kit.Point.prototype, 'plus', () => 'p'); assert.strictEqual(new kit.Point(1, 2).plus(), 'p'); assert.strictEqual(plus.mock.callCount(), 1); });
test('env', () => { process.env.KIT_NAME = 'n'; assert.strictEqual(kit.env('KIT_NAME'), 'n'); delete process.env.KIT_NAME; assert.strictEqual(kit.env('KIT_NAME'), undefined); });
test('cwd', () => { const old = process.cwd(); process.chdir(require('os').tmpdir()); try { assert.strictEqual(kit.cwd(), process.cwd()); } finally { process.chdir(old); } });
"""

MODULES = """
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test, { describe, it } from 'node:test';
import kit, { add, Point } from './kit.mjs';
import * as all from './kit.mjs';
import old from './old.cjs';
import { helped } from './helper.mjs';
describe('named', () => { it('adds', () => assert.equal(add(1, 2), 3)); it('is a class', () => assert.deepEqual(new Point(1), new Point(1))); });
test('default', () => assert.equal(kit(), 'default'));
test('all', () => assert.deepEqual(Object.keys(all).sort(), ['Point', 'add', 'default', 'fail']));
test('commonjs', () => assert.equal(old.twice(4), 8));
test('helper', () => assert.equal(helped(1), 2));
test('late', async () => assert.equal((await import('./kit.mjs')).add(1, 1), 2));
test('not there', async () => assert.rejects(import('./none.mjs'), { code: 'ERR_MODULE_NOT_FOUND' }));
test('throws', async () => assert.rejects(import('./bad.mjs'), /at once/));
"""

HONEST = {
    "values": VALUES,
    "classes": CLASSES,
    "errors": ERRORS,
    "calls": CALLS,
    "mocks": MOCKS,
}


def failed(told: Told) -> dict[str, str]:
    assert not told.forged
    assert told.outcomes, told.output
    return dict(told.messages)


class TestHonest:
    """What holds in one process holds in two."""

    @pytest.mark.parametrize("name", list(HONEST))
    def test_commonjs(self, name: str) -> None:
        told = judge_apart({"hidden.test.js": HEAD + HONEST[name]}, {"kit.js": KIT}, "hidden.test.js")
        assert failed(told) == {}, told.output

    def test_modules(self) -> None:
        told = judge_apart(
            {
                "hidden.test.mjs": MODULES,
                "helper.mjs": "import { add } from './kit.mjs'; export const helped = (n) => add(n, 1);",
            },
            {
                "kit.mjs": "export const add = (a, b) => a + b;\n"
                "export class Point { constructor(x) { this.x = x; } }\n"
                "export default () => 'default';\nexport const fail = () => { throw new Error(); };\n",
                "old.cjs": "exports.twice = (n) => 2 * n;\n",
                "bad.mjs": "throw new Error('at once');\n",
            },
            "hidden.test.mjs",
        )
        assert failed(told) == {}, told.output
