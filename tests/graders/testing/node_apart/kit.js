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
  boxed: () => Object('text'), lone: () => '\ud800', proto: () => JSON.parse('{"__proto__": {"x": 1}, "a": 1}'),
  url: () => new URL('http://h/p?q=1'), error: () => new TypeError('t', { cause: new Error('c') }),
  many: () => new AggregateError([new Error('one')], 'many'), shared: () => { const one = [1]; return [one, one]; },
};
