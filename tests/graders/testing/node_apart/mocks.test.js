const { test, describe, it, before, beforeEach, mock } = require('node:test');
const assert = require('node:assert');
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
