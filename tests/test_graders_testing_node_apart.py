"""``node --test`` with the submission in another process: honest work holds, what lies does not.

Through the runner and a real solution host, for the two are programs that must agree.
"""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from tests.node_pairs import INSIDE, NODE, Told, judge_apart

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no node on this machine")

BOUNDARY = INSIDE / "boundary"

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
        told = judge_apart(
            {"hidden.test.js": HEAD + HONEST[name]}, {"kit.js": KIT}, "hidden.test.js"
        )
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


KINDS = """
const kit = require('./kit.js');
test('sum', () => assert.strictEqual(kit.sum([1, 2]), 3));
test('list', () => assert.deepStrictEqual(kit.list(), [1, 2]));
test('same', () => assert.strictEqual(kit.sum([2]), 2));
"""
"""Three tests that nothing below passes honestly."""

_AGREE = """
const agree = new Proxy(function () {}, {
  get: (_, key) => (key === Symbol.toPrimitive ? () => 3 : key === Symbol.hasInstance ? () => true : agree),
  has: () => true, ownKeys: () => ['length', 'prototype'], getPrototypeOf: () => Array.prototype, apply: () => agree,
});
"""

# What a submission does, and tests that it would pass if that worked.
LIES = {
    "an object that turns into what is wanted": (
        _AGREE + "exports.sum = exports.list = () => agree;",
        KINDS,
    ),
    "a list that tells its length anew": (
        "let n = 0; exports.sum = () => 0; exports.list = () => new Proxy([,,], "
        "{ get: (l, k) => (k === 'length' && n++ ? 0 : l[k]) });",
        KINDS,
    ),
    "a set that answers for itself": (
        "exports.give = () => Object.assign(Object.defineProperty(new Set(), 'size', { get: () => 3 }), "
        "{ [Symbol.iterator]: function* () {}, has: () => true });",
        "test('set', () => assert.deepStrictEqual(require('./kit.js').give(), new Set([1, 2, 3])));",
    ),
    "a thenable that calls nobody": (
        "exports.load = () => ({ then(take) { return take && take.length === 2 ? take() : Promise.resolve(); } });",
        """
        const { load } = require('./kit.js');
        test('then', () => load(3).then((value) => assert.strictEqual(value, 9)));
        test('awaits', async () => { const value = await load(3); assert.notStrictEqual(value, 9); });
        test('returned', () => load(3));
        """,
    ),
    "a promise whose then calls nobody": (
        "exports.load = () => Object.assign(Promise.resolve(1), { then: () => Promise.resolve() });",
        "test('then', () => require('./kit.js').load(3).then((value) => assert.strictEqual(value, 9)));",
    ),
    "a class that has everything for an instance": (
        "exports.Kit = class { static [Symbol.hasInstance]() { return true; } }; exports.make = () => ({});",
        "const { Kit, make } = require('./kit.js');\ntest('is one', () => assert.ok(make() instanceof Kit));\n"
        "test('is one here', () => assert.ok({} instanceof Kit));",
    ),
    "instances without anything to compare": (
        "exports.Kit = class { constructor(a) { Object.defineProperty(this, 'a', { value: a }); } };",
        "const { Kit } = require('./kit.js');\ntest('equal', () => assert.deepStrictEqual(new Kit(1), new Kit(2)));\n"
        "test('in a list', () => assert.deepEqual([{ a: new Kit(1) }], [{ a: new Kit(2) }]));\n"
        "test('util', () => assert.ok(require('node:util').isDeepStrictEqual(new Kit(1), new Kit(2))));",
    ),
    "an assertion that is swallowed": (
        "exports.each = (items, fn) => items.forEach((item) => { try { fn(item); } catch {} });\n"
        "exports.later = async (fn) => { try { await fn(); } catch {} };",
        """
        const kit = require('./kit.js');
        test('at once', () => kit.each([1, 2], (item) => assert.strictEqual(item, 3)));
        test('later', () => kit.later(async () => { await null; assert.strictEqual(1, 3); }));
        """,
    ),
    "an argument that is emptied": (
        "exports.sorted = (items) => { items.length = 0; return []; };\n"
        "exports.sortedItself = (items) => { items.length = 0; return items; };",
        """
        const kit = require('./kit.js');
        for (const name of ['sorted', 'sortedItself']) {
          test(name, () => { const items = [3, 1]; assert.deepStrictEqual(kit[name](items), [...items].sort()); });
        }
        """,
    ),
    "an argument returned for a copy": (
        "exports.clone = (value) => value;",
        "test('clone', () => { const a = { b: [1] }; const b = require('./kit.js').clone(a); "
        "assert.deepStrictEqual(a, b); assert.notStrictEqual(a, b); });",
    ),
    "prototypes polluted by what is copied": (
        "exports.parse = () => JSON.parse('{\"__proto__\": {\"polluted\": 1}, \"constructor\": {\"prototype\": "
        "{\"polluted\": 1}}}');\nObject.prototype.polluted = 1;",
        "test('clean', () => { const got = require('./kit.js').parse(); ({ ...got }); "
        "assert.strictEqual({}.polluted, 1); });",
    ),
    "builtins replaced": (
        "const fs = require('fs'); fs.existsSync = () => true; Object.is = () => true; Array.prototype.includes = "
        "() => true; Math.abs = () => 0; require('assert').strictEqual = () => {}; exports.sum = () => 9;",
        """
        const kit = require('./kit.js');
        test('exists', () => { kit.sum(); assert.ok(require('fs').existsSync('/nowhere')); });
        test('near', () => assert.ok(Math.abs(kit.sum() - 3) < 1e-9));
        test('includes', () => assert.ok([3].includes(kit.sum())));
        test('equal', () => assert.strictEqual(kit.sum(), 3));
        """,
    ),
    "node's own functions for callbacks": (
        "exports.compare = Object.is; exports.leave = process.exit; exports.fs = require('fs');",
        """
        const kit = require('./kit.js');
        test('not ours', () => assert.strictEqual(kit.fs, require('fs')));
        test('nor this', () => { kit.leave(0); });
        test('nor these', () => assert.strictEqual(kit.compare, Object.is));
        """,
    ),
    "symbols of the judge's": (
        "exports.give = () => Symbol('own'); exports.say = (s) => Symbol.for(String(s.description));",
        "const kit = require('./kit.js'); const own = Symbol('own');\n"
        "test('other', () => assert.strictEqual(kit.give(), own));\n"
        "test('made up', () => assert.strictEqual(kit.say(own), own));",
    ),
    "the context of a test": (
        "exports.run = (t) => t.skip(); exports.find = (o) => o.mock;",
        "const kit = require('./kit.js');\ntest('skips', (t) => { kit.run(t); assert.ok(false); });\n"
        "test('inside', (t) => { kit.run({ t }.t); assert.ok(false); });",
    ),
    "tests of its own": (
        "const test = require('node:test'); test('sum', () => {}); test('list', () => {}); test('same', () => {}); "
        "exports.sum = exports.list = () => 0;",
        KINDS,
    ),
    "a done that is called too early": (
        "exports.joined = (fn) => { fn.caller?.arguments[1](); const done = exports.joined.caller?.arguments[1]; done?.(); };",
        "test('done', (t, done) => { require('./kit.js').joined((text) => { assert.strictEqual(text, 'a'); done(); }); });",
    ),
}

# What a host sends that is not what our code would have sent, as a frame in the place of an answer.
FORGED = {
    "no JSON": "'{]'",
    "no list": "'{\"ok\": true}'",
    "an unknown kind": "JSON.stringify(['z', 1])",
    "an answer that nobody asked for": "JSON.stringify(['a', 999, true, 3, null])",
    "a value of an unknown form": "JSON.stringify(['a', n, true, ['zz', 1], null])",
    "an object in a form": "JSON.stringify(['a', n, true, { length: 3 }, null])",
    "a builtin function": "JSON.stringify(['a', n, true, ['B', 'process'], null])",
    "a function of node's": "JSON.stringify(['a', n, true, ['B', 'Object.is'], null])",
    "something of ours that was not given": "JSON.stringify(['a', n, true, ['t', 7], null])",
    "a back reference to nothing": "JSON.stringify(['a', n, true, ['c', 0], null])",
    "a call of what was not given": "JSON.stringify(['q', 1, 'call', 1, ['u'], []])",
    "another request than a call": "JSON.stringify(['q', 1, 'load', '/opt/assay/inside/node_run.cjs', 'x', 'require'])",
    "a settled promise that nobody has": "JSON.stringify(['n', 'settle', 5, true, 3, null])",
    "depth": "'[\"a\",' + n + ',true,' + '[\"a\",1,0,['.repeat(5000) + '],[]]'.repeat(5000) + ',null]'",
    "a list that claims a length": "JSON.stringify(['a', n, true, ['a', 1, 0, { length: 1e9 }, []], null])",
    "a prototype of its own": "JSON.stringify(['a', n, true, ['R', 5, 'o', ['o', 6, 0, 0, []]], null])",
    "a view of a made up class": "JSON.stringify(['a', n, true, ['b', 1, 0, 'Function', 'AAAA'], null])",
    "a symbol of the language by a wrong name": "JSON.stringify(['a', n, true, ['w', 'constructor'], null])",
}


_ALL_AT_ONCE = """
const { Judge } = require(process.argv[1]);
const told = {};
for (const [name, make] of Object.entries({ FRAMES })) {
  const frames = [];
  let lost = '';
  const link = { send: (text) => frames.push(make(JSON.parse(text)[1])), wait: () => frames.pop(), hold() {}, release() {} };
  const judge = new Judge(link, {
    root: '/', patience: 1000, loose: [], current: () => undefined, undecided() {},
    lost(why) { lost ||= why; throw new Error(why); },
  });
  try {
    told[name] = ['took', typeof judge.load('/a.test.js', './kit.js', 'require')];
  } catch (error) {
    told[name] = [lost];
  }
}
console.log(JSON.stringify(told));
"""


class TestLies:
    """What only the submission's own code could decide decides nothing."""

    @pytest.fixture(scope="class")
    @classmethod
    def told(cls) -> Told:
        """Of all of them at once, each in a file of its own."""
        tests, kits = dict[str, str](), dict[str, str]()
        for number, (kit, text) in enumerate(LIES.values()):
            tests[f"{number}.test.js"] = HEAD + text.replace("./kit.js", f"./kit{number}.js")
            kits[f"kit{number}.js"] = kit
        return judge_apart(tests, kits, *tests)

    @pytest.mark.parametrize("name", list(LIES))
    def test_no_lie_passes_a_test(self, told: Told, name: str) -> None:
        file = f"{list(LIES).index(name)}.test.js"
        outcomes = {key: one for key, one in told.outcomes.items() if key.startswith(file)}
        assert outcomes, told.output
        assert "passed" not in outcomes.values(), outcomes
        assert not told.forged
        assert not told.tampering

    def test_what_the_case_names_may_decide(self) -> None:
        tests = """
        const { Kit, sorted } = require('./kit.js');
        test('equal', () => assert.deepStrictEqual(new Kit(1), new Kit(2)));
        test('awaited', async () => assert.strictEqual(await new Kit(1), 5));
        test('is one', () => assert.ok(new Kit(1) instanceof Kit));
        test('sorted', () => { const items = [3, 1]; assert.strictEqual(sorted(items), 2); assert.deepStrictEqual(items, [1, 3]); });
        """
        kit = """
        exports.Kit = class Kit {
          #a; constructor(a) { this.#a = a; }
          then(done) { done(5); }
          static [Symbol.hasInstance]() { return true; }
        };
        exports.sorted = function sorted(items) { items.sort(); return items.length; };
        """
        hidden = {"hidden.test.js": HEAD + tests}
        told = judge_apart(hidden, {"kit.js": kit}, "hidden.test.js")
        assert set(told.outcomes.values()) == {"failed"}
        assert set(told.undecided) == {"Kit", "sorted"}
        told = judge_apart(hidden, {"kit.js": kit}, "hidden.test.js", loose=["kit.Kit", "kit.sorted"])
        assert failed(told) == {}, told.output


class TestTheWire:
    """Whatever the other end sends, the judge decodes it strictly or hears no more of it."""

    @pytest.fixture(scope="class")
    @classmethod
    def told(cls) -> dict[str, list[str]]:
        frames = ", ".join(f"{json.dumps(name)}: (n) => {frame}" for name, frame in FORGED.items())
        words = [NODE, "-e", _ALL_AT_ONCE.replace("FRAMES", frames), str(BOUNDARY / "judge.cjs")]
        return json.loads(subprocess.run(words, capture_output=True, check=True).stdout)

    @pytest.mark.parametrize("name", list(FORGED))
    def test_a_forged_frame_ends_the_conversation(
        self, told: dict[str, list[str]], name: str
    ) -> None:
        [lost] = told[name]
        assert "makes no sense" in lost

    def test_an_honest_frame_does_not(self) -> None:
        frames = "honest: (n) => JSON.stringify(['a', n, true, ['o', 1, 0, 0, ['a', 1]], null])"
        words = [NODE, "-e", _ALL_AT_ONCE.replace("FRAMES", frames), str(BOUNDARY / "judge.cjs")]
        done = subprocess.run(words, capture_output=True, check=True).stdout
        assert json.loads(done) == {"honest": ["took", "object"]}

    def test_a_frame_that_is_too_long_ends_the_conversation(self) -> None:
        host = """
        const net = require('net');
        function start() {
          const socket = net.connect(process.env.ASSAY_LINK);
          socket.on('error', () => {}).on('close', start);
          socket.on('data', () => socket.write(Buffer.from([0, 0, 0, 64, 1, 1])));
        }
        start();
        """
        told = judge_apart({"hidden.test.js": HEAD + ALONE}, {}, "hidden.test.js", launcher=host)
        assert told.outcomes["hidden.test.js::does not"] == "passed", told.output
        assert "too much at once" in told.messages["hidden.test.js::needs it"]


ALONE = """
test('needs it', () => { const kit = require('./kit.js'); assert.ok(kit); kit.sum([1]); });
test('does not', () => assert.ok(true));
"""

# What becomes of the process of a submission in a call, and what is said of that.
ENDS = {
    "exits": ("exports.die = () => process.reallyExit(0);", "it ended"),
    "is killed": ("exports.die = () => process.kill(process.pid, 'SIGKILL');", "it ended"),
    "aborts": ("exports.die = () => process.abort();", "it ended"),
    "loops": ("exports.die = () => { for (;;); };", "it did not answer within"),
    "never loads": ("exports.die = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);", "not answer"),
    "floods": ("exports.die = () => 'x'.repeat(33 << 20);", "too large"),
    "throws while it is asked": (
        "exports.die = () => new Proxy({}, { getPrototypeOf() { throw new Error('asked'); } });",
        "asked",
    ),
}


class TestTheEnd:
    """A host that is gone fails what needed it, and nothing else."""

    @pytest.fixture(scope="class")
    @classmethod
    def told(cls) -> Told:
        """Of all of them at once, each in a file of its own."""
        tests, kits = dict[str, str](), dict[str, str]()
        for number, (kit, _) in enumerate(ENDS.values()):
            tests[f"{number}.test.js"] = f"""{HEAD}
            const kit = require('./kit{number}.js');
            test('before', () => assert.strictEqual(kit.add(1, 2), 3));
            test('dies', () => {{ assert.ok(kit.die()); }});
            test('behind', () => assert.strictEqual(kit.add(1, 2), 3));
            """
            kits[f"kit{number}.js"] = f"{kit}\nexports.add = (a, b) => a + b;"
        return judge_apart(tests, kits, *tests, patience=5.0)

    @pytest.mark.parametrize("name", list(ENDS))
    def test_only_the_test_that_it_ended_in_fails(self, told: Told, name: str) -> None:
        file = f"{list(ENDS).index(name)}.test.js"
        outcomes = {
            key.partition("::")[2]: one
            for key, one in told.outcomes.items()
            if key.startswith(file)
        }
        assert outcomes == {"before": "passed", "dies": "failed", "behind": "passed"}
        assert ENDS[name][1] in told.messages[f"{file}::dies"]

    def test_a_promise_that_is_never_settled_fails_its_test(self) -> None:
        tests = "test('never', async () => { await require('./kit.js').never(); });\ntest('other', () => {});"
        told = judge_apart(
            {"hidden.test.js": HEAD + tests},
            {"kit.js": "exports.never = () => new Promise(() => {});"},
            "hidden.test.js",
        )
        assert list(told.messages) == ["hidden.test.js::never"], told.output

    def test_a_callback_is_dead_when_its_test_has_ended(self) -> None:
        tests = """
        const kit = require('./kit.js');
        const heard = [];
        test('gives', () => kit.keep(() => { heard.push(1); return 'called'; }));
        test('looks', () => { assert.match(kit.use(), /has ended/); assert.deepStrictEqual(heard, []); });
        test('may again', () => { kit.keep(() => 'called'); assert.strictEqual(kit.use(), 'called'); });
        """
        kit = (
            "let kept; exports.keep = (fn) => { kept = fn; };\n"
            "exports.use = () => { try { return kept(); } catch (error) { return error.message; } };"
        )
        told = judge_apart({"hidden.test.js": HEAD + tests}, {"kit.js": kit}, "hidden.test.js")
        assert failed(told) == {}, told.output

    def test_an_error_outside_of_a_call_fails_the_test(self) -> None:
        tests = """
        const kit = require('./kit.js');
        test('late', async () => { kit.later(); await new Promise((resolve) => setTimeout(resolve, 300)); });
        test('in a callback', (t, done) => { kit.call((value) => { assert.strictEqual(value, 2); done(); }); });
        """
        kit = (
            "exports.later = () => { setTimeout(() => { throw new Error('nobody hears'); }, 5); };\n"
            "exports.call = (fn) => { setTimeout(() => fn(1), 5); };"
        )
        told = judge_apart({"hidden.test.js": HEAD + tests}, {"kit.js": kit}, "hidden.test.js")
        assert set(told.outcomes.values()) == {"failed"}, told.output
        assert "1 !== 2" in told.messages["hidden.test.js::in a callback"]

    def test_each_file_has_a_host_of_its_own(self) -> None:
        tests = HEAD + "test('first', () => assert.strictEqual(require('./kit.js').start(), 1));"
        told = judge_apart(
            {"a.test.js": tests, "b.test.js": tests},
            {"kit.js": "globalThis.n = 0; exports.start = () => (globalThis.n += 1);"},
            "a.test.js",
            "b.test.js",
        )
        assert failed(told) == {}, told.output

    def test_a_source_s_own_version_is_not_loaded_by_the_judge(self) -> None:
        told = judge_apart(
            {"hidden.test.js": HEAD + "test('is theirs', () => assert.strictEqual(require('./kit.js').add(1, 2), 3));"},
            {"kit.js": "exports.add = (a, b) => a + b;"},
            "hidden.test.js",
            source={"kit.js": "throw new Error('the stub was loaded');"},
        )
        assert failed(told) == {}, told.output
