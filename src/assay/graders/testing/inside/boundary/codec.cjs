// Values as plain JSON and back. What is copied here is a copy at the other end; all else - functions,
// instances of classes - is for the two ends to give a form (`foreign`) and to read one.
//
// A form is null, a boolean, a number, a string or an array that begins with a tag. There are no
// objects in it, so that nothing is ever looked up by a name that the other end chose.
'use strict';

const { isDeepStrictEqual, types } = require('node:util');
const { names, shared, symbols, things } = require('./builtins.cjs');

const { apply, defineProperty, deleteProperty, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
const { freeze, is, isFrozen, preventExtensions, isExtensible, setPrototypeOf } = Object;
const { isArray } = Array;
const { isFinite } = Number;
const { stringify } = JSON;
const { isProxy, isPromise, isNativeError } = types;
const ErrorPlain = Error;
const { captureStackTrace } = Error;
const bytesOf = Buffer.from;

const DEEPEST = 200;
const LONGEST_ARRAY = 4_000_000;

class Broken extends Error {}

function must(holds, what = 'a form makes no sense') {
  if (!holds) throw new Broken(what);
}

const isId = (id) => Number.isSafeInteger(id) && id !== 0;

const LONG_TRAIL = 60;

// A trail - the way by which something was come to - with one more step. What goes round is told
// twice, no more.
function longer(trail, step) {
  const whole = trail + step;
  return whole.length <= LONG_TRAIL ? whole : whole.replace(/(.{2,40}?)\1\1$/s, '$1$1').slice(0, 4 * LONG_TRAIL);
}

const stepOf = (key) =>
  typeof key === 'symbol' ? `[${key.description}]` : (key >>> 0) + '' === key ? '[]' : `.${key}`;

// The places of plain data in a form: what holds it, and where.
function* leaves(holder, at) {
  const form = holder[at];
  if (!isArray(form)) {
    if (form !== null) yield [holder, at];
    return;
  }
  const parts = { __proto__: null, a: form[3], m: form[3], s: form[3], o: form[4], N: form[2] }[form[0]];
  if (isArray(parts)) for (let n = form[0] === 'o' ? 1 : 0; n < parts.length; n += form[0] === 'o' ? 2 : 1) yield* leaves(parts, n);
  else if ('dxi'.includes(form[0])) yield* leaves(form, form[0] === 'i' ? 1 : 3);
  else if (form[0] === 'b') yield [form, 4];
  else if (!['u', '_', 'c'].includes(form[0])) yield [form, -1];
}

// Whether there is anything in it; undefined if it is nothing itself.
function isFull(form) {
  if (form === null || (isArray(form) && 'uPR'.includes(form[0]))) return undefined;
  for (const [holder, at] of leaves([form], 0)) if (holder[at] !== '') return true;
  return false;
}

// Classes whose contents are not their properties.
const VIEWS = new Map();
for (const kind of [
  'Buffer', 'DataView', 'Uint8Array', 'Int8Array', 'Uint16Array', 'Int16Array', 'Uint32Array', 'Int32Array',
  'Float32Array', 'Float64Array', 'Uint8ClampedArray', 'BigInt64Array', 'BigUint64Array',
]) {
  VIEWS.set(globalThis[kind].prototype, kind);
}
const { Date: PlainDate, RegExp: PlainRegExp, Map: PlainMap, Set: PlainSet, URL: PlainURL } = globalThis;
const PLAIN = new Map([
  [Date.prototype, 'd'], [RegExp.prototype, 'r'], [Map.prototype, 'm'], [Set.prototype, 's'],
  [ArrayBuffer.prototype, 'b'], [URL.prototype, 'l'], [String.prototype, 'x'], [Number.prototype, 'x'], [Boolean.prototype, 'x'],
]);

class Codec {
  constructor() {
    this.own = new PlainMap(); // id: what we told of, or a WeakRef of it if it was copied
    this.ids = new WeakMap();
    this.told = new PlainSet(); // ids that the other end has had a description of
    this.theirs = new PlainMap(); // id: what stands here for something of theirs
    this.theirIds = new WeakMap(); // {id, copied}
    this.ownSymbols = new PlainMap();
    this.theirSymbols = new PlainMap();
    this.count = 0;
  }

  // The id of something of ours.
  tell(thing, copied) {
    let id = this.ids.get(thing);
    if (id === undefined) {
      id = this.count += 1;
      this.ids.set(thing, id);
      this.own.set(id, copied ? new WeakRef(thing) : thing);
    }
    return id;
  }

  owned(id) {
    must(isId(id) && this.own.has(id), 'it speaks of what it was never told');
    const thing = this.own.get(id);
    return thing instanceof WeakRef ? thing.deref() : thing;
  }

  meet(id, thing, copied) {
    must(isId(id) && id > 0);
    this.theirs.set(id, copied ? new WeakRef(thing) : thing);
    this.theirIds.set(thing, { id, copied });
    return thing;
  }

  met(id) {
    const thing = this.theirs.get(id);
    must(thing !== undefined, 'it speaks of what it never told');
    return thing instanceof WeakRef ? thing.deref() : thing;
  }

  encode(value, settings = {}) {
    const told = [];
    try {
      return this.write(value, { seen: new PlainMap(), depth: 0, told, ...settings });
    } catch (error) {
      for (const id of told) this.told.delete(id);
      throw error;
    }
  }

  // The text of a form that is not sent.
  sketch(value, settings = {}) {
    const told = [];
    const form = this.write(value, { seen: new PlainMap(), depth: 0, told, ...settings });
    for (const id of told) this.told.delete(id);
    return stringify(form);
  }

  // Whether something is told of for the first time.
  isNews(id, cx) {
    if (this.told.has(id)) return false;
    this.told.add(id);
    cx.told.push(id);
    return true;
  }

  decode(form, settings = {}) {
    return this.read(form, { seen: [], depth: 0, ...settings });
  }

  write(value, cx) {
    switch (typeof value) {
      case 'string':
      case 'boolean':
        return value;
      case 'number':
        if (is(value, -0)) return ['n', '-0'];
        return isFinite(value) ? value : ['n', `${value}`];
      case 'undefined':
        return ['u'];
      case 'bigint':
        return ['i', `${value}`];
      case 'symbol':
        return cx.deep ? ['y', `${value.description}`] : this.writeSymbol(value);
      default:
    }
    if (value === null) return null;
    if (cx.seen.has(value)) return ['c', cx.seen.get(value)];
    if (cx.depth >= DEEPEST) throw new RangeError('the value is nested too deeply to cross');
    cx.depth += 1;
    const form = this.writeObject(value, cx);
    cx.depth -= 1;
    return form;
  }

  writeSymbol(symbol) {
    if (symbols.has(symbol)) return ['w', symbols.get(symbol)];
    const key = Symbol.keyFor(symbol);
    if (key !== undefined) return ['y', key];
    if (this.theirSymbols.has(symbol)) return ['h', -this.theirSymbols.get(symbol), ''];
    if (!this.ownSymbols.has(symbol)) {
      this.count += 1;
      this.ownSymbols.set(symbol, this.count);
      this.own.set(this.count, symbol);
    }
    return ['h', this.ownSymbols.get(symbol), symbol.description ?? ''];
  }

  writeObject(value, cx) {
    const known = this.theirIds.get(value);
    if (known !== undefined && !known.copied) return ['t', known.id];
    const name = names.get(value);
    if (name !== undefined && this.mayName(name)) return ['B', name];
    const proxied = isProxy(value);
    if (typeof value === 'function' || proxied) return this.foreign(value, cx);
    if (isPromise(value)) return cx.deep ? ['u'] : this.writePromise(value);
    const prototype = getPrototypeOf(value);
    const tag = isArray(value) && prototype === Array.prototype ? 'a' : this.tagOf(value, prototype, known);
    if (tag === undefined) return this.foreign(value, cx);
    const ref = known === undefined ? this.tell(value, true) : -known.id;
    cx.seen.set(value, cx.seen.size);
    const level = isExtensible(value) ? 0 : isFrozen(value) ? 2 : 1;
    return [tag, ref, level, ...this.contentOf(tag, value, prototype, cx)];
  }

  // How something can be copied; undefined if it cannot.
  tagOf(value, prototype, known) {
    if (isNativeError(value) || (value instanceof ErrorPlain && !apply(Object.prototype.hasOwnProperty, value, ['constructor']))) return 'e';
    if (prototype === Object.prototype || prototype === null) {
      if (types.isArgumentsObject(value)) return undefined;
      if (known !== undefined) return 'o';
      return ownKeys(value).every((key) => this.isPlain(getOwnPropertyDescriptor(value, key))) ? 'o' : undefined;
    }
    const tag = VIEWS.has(prototype) ? 'b' : PLAIN.get(prototype);
    if (tag === undefined || !GENUINE[tag](value)) return undefined;
    if (tag !== 'b' && tag !== 'x' && ownKeys(value).some((key) => key !== 'lastIndex')) return undefined;
    return tag;
  }

  contentOf(tag, value, prototype, cx) {
    const write = (item) => this.write(item, cx);
    switch (tag) {
      case 'a': {
        if (value.length > LONGEST_ARRAY) throw new RangeError('the array is too long to cross');
        const items = [];
        for (let at = 0; at < value.length; at += 1) items.push(at in value ? write(value[at]) : ['_']);
        return [items, this.pairs(value, cx, (key) => typeof key === 'symbol' || !(key === 'length' || (key >>> 0) + '' === key))];
      }
      case 'o':
        return [prototype === null ? 1 : 0, this.pairs(value, cx)];
      case 'e': {
        const message = getOwnPropertyDescriptor(value, 'message')?.value;
        const kept = (key) => key !== 'stack' && key !== 'message';
        return [this.prototypeOf(prototype, cx), typeof message === 'string' ? message : null, this.pairs(value, cx, kept, true)];
      }
      case 'm':
        return [[...apply(Map.prototype.entries, value, [])].flat(1).map(write)];
      case 's':
        return [[...apply(Set.prototype.values, value, [])].map(write)];
      case 'd':
        return [write(apply(PlainDate.prototype.getTime, value, []))];
      case 'r':
        return [value.source, value.flags, value.lastIndex];
      case 'l':
        return [value.href];
      case 'x':
        return [write(value.valueOf())];
      default: {
        const view = VIEWS.get(prototype) ?? 'ArrayBuffer';
        const raw = view === 'ArrayBuffer' ? bytesOf(value) : bytesOf(value.buffer, value.byteOffset, value.byteLength);
        return [view, raw.toString('base64')];
      }
    }
  }

  // Own properties as key, value, key, value; with `all` also those that are not enumerable.
  pairs(value, cx, wanted = () => true, all = false) {
    const told = [];
    for (const key of ownKeys(value)) {
      const found = getOwnPropertyDescriptor(value, key);
      if (!wanted(key) || !('value' in found) || !(all || found.enumerable)) continue;
      told.push(this.write(key, cx), this.write(found.value, cx));
      if (all) told.push(found.enumerable);
    }
    return told;
  }

  read(form, cx) {
    if (form === null || typeof form === 'string' || typeof form === 'boolean') return form;
    if (typeof form === 'number') return form;
    must(isArray(form) && typeof form[0] === 'string' && cx.depth < DEEPEST);
    cx.depth += 1;
    const reader = READERS.get(form[0]);
    const value = reader === undefined ? this.readForeign(form, cx) : apply(reader, this, [form, cx]);
    cx.depth -= 1;
    return value;
  }

  // Reads what is inside of what is read: it is come to by a longer trail.
  inside(form, cx, step) {
    if (cx.trail === undefined || !isArray(form)) return this.read(form, cx);
    const { trail } = cx;
    cx.trail = longer(trail, step);
    const value = this.read(form, cx);
    cx.trail = trail;
    return value;
  }

  // NaN or an infinity arrives; a class that both ends have.
  odd() {}
  named(thing) {
    return thing;
  }

  readKey(form, cx) {
    const key = this.read(form, cx);
    must(typeof key === 'string' || typeof key === 'symbol');
    return key;
  }

  // A copied object: one of ours that comes back, or theirs.
  readCopied(form, cx) {
    const [tag, ref, level] = form;
    must(isId(ref) && [0, 1, 2].includes(level));
    const ours = ref < 0 ? this.owned(-ref) : undefined;
    const fill = ours !== undefined && cx.fill === true;
    const before = fill && cx.filled !== undefined && this.sketch(ours);
    const made = MAKERS[tag](this, form, cx, fill && !isFrozen(ours) ? ours : undefined);
    if (level === 2) freeze(made);
    else if (level === 1) preventExtensions(made);
    if (cx.bare) return made;
    if (before && this.sketch(ours) !== before) cx.filled();
    // A copy of ours comes back: it is ours as long as it has not changed.
    if (ref < 0) return fill || (ours !== undefined && (isNativeError(ours) || isDeepStrictEqual(ours, made))) ? ours : made;
    const old = this.theirs.get(ref)?.deref?.();
    // The same thing again, unchanged, is the same here.
    if (cx.depth === 1 && old !== undefined && cx.same && isDeepStrictEqual(old, made)) return old;
    return this.meet(ref, made, true);
  }

  define(target, form, cx, all = false) {
    must(isArray(form) && form.length % (all ? 3 : 2) === 0);
    for (let at = 0; at < form.length; at += all ? 3 : 2) {
      const key = this.readKey(form[at], cx);
      defineProperty(target, key, {
        value: this.inside(form[at + 1], cx, stepOf(key)),
        enumerable: all ? form[at + 2] === true : true,
        writable: true,
        configurable: true,
      });
    }
    return target;
  }
}

const GENUINE = {
  __proto__: null,
  d: types.isDate, r: types.isRegExp, m: types.isMap, s: types.isSet, x: types.isBoxedPrimitive,
  l: (value) => { try { return typeof apply(HREF, value, []) === 'string'; } catch { return false; } },
  b: (value) => types.isArrayBuffer(value) || types.isArrayBufferView(value),
};
const HREF = getOwnPropertyDescriptor(PlainURL.prototype, 'href').get;

function emptied(object) {
  for (const key of ownKeys(object)) deleteProperty(object, key);
  return object;
}

// Each makes what a form says, or puts it into an object that there is.
const MAKERS = {
  __proto__: null,
  a(codec, [, , , items, extras], cx, into) {
    must(isArray(items) && items.length <= LONGEST_ARRAY && (into === undefined || isArray(into)));
    const list = into ?? [];
    if (into !== undefined) emptied(into);
    list.length = items.length;
    cx.seen.push(list);
    items.forEach((item, at) => {
      if (isArray(item) && item[0] === '_') return;
      defineProperty(list, at, { value: codec.inside(item, cx, '[]'), enumerable: true, writable: true, configurable: true });
    });
    return codec.define(list, extras, cx);
  },
  o(codec, [, , , bare, pairs], cx, into) {
    const object = into === undefined ? {} : emptied(into);
    if (bare === 1) setPrototypeOf(object, null);
    cx.seen.push(object);
    return codec.define(object, pairs, cx);
  },
  e(codec, [, , , prototype, message, pairs], cx, into) {
    must(message === null || typeof message === 'string');
    const error = into ?? new ErrorPlain(message ?? undefined);
    cx.seen.push(error);
    if (into !== undefined) return error;
    setPrototypeOf(error, codec.readPrototype(prototype, cx));
    captureStackTrace(error, MAKERS.e);
    return codec.define(error, pairs, cx, true);
  },
  m(codec, [, , , entries], cx, into) {
    must(isArray(entries) && entries.length % 2 === 0 && (into === undefined || types.isMap(into)));
    const map = into ?? new PlainMap();
    map.clear();
    cx.seen.push(map);
    for (let at = 0; at < entries.length; at += 2) {
      const key = codec.inside(entries[at], cx, '[]');
      map.set(key, codec.inside(entries[at + 1], cx, cx.exports && cx.depth === 1 ? stepOf(key) : '[]'));
    }
    return map;
  },
  s(codec, [, , , items], cx, into) {
    must(isArray(items) && (into === undefined || types.isSet(into)));
    const set = into ?? new PlainSet();
    set.clear();
    cx.seen.push(set);
    for (const item of items) set.add(codec.inside(item, cx, '[]'));
    return set;
  },
  d(codec, [, , , time], cx, into) {
    const at = codec.read(time, cx);
    must(typeof at === 'number');
    const date = into ?? new PlainDate(0);
    apply(PlainDate.prototype.setTime, date, [at]);
    cx.seen.push(date);
    return date;
  },
  r(codec, [, , , source, flags, last], cx, into) {
    must(typeof source === 'string' && typeof flags === 'string' && typeof last === 'number');
    const found = into ?? new PlainRegExp(source, flags);
    found.lastIndex = last;
    cx.seen.push(found);
    return found;
  },
  l(codec, [, , , href], cx, into) {
    must(typeof href === 'string');
    const url = into ?? new PlainURL(href);
    if (into !== undefined) into.href = href;
    cx.seen.push(url);
    return url;
  },
  x(codec, [, , , primitive], cx, into) {
    const value = into ?? Object(codec.read(primitive, cx));
    must(types.isBoxedPrimitive(value));
    cx.seen.push(value);
    return value;
  },
  b(codec, [, , , view, text], cx, into) {
    must(typeof text === 'string');
    const raw = bytesOf(text, 'base64');
    const place = new ArrayBuffer(raw.length);
    new Uint8Array(place).set(raw);
    let made = place;
    if (into !== undefined) {
      const bytes = types.isArrayBuffer(into) ? new Uint8Array(into) : new Uint8Array(into.buffer, into.byteOffset, into.byteLength);
      must(bytes.length === raw.length);
      bytes.set(raw);
      made = into;
    } else if (view === 'Buffer') made = bytesOf(place);
    else if (view !== 'ArrayBuffer') {
      const kind = [...VIEWS.values()].find((known) => known === view);
      must(kind !== undefined);
      made = new (things.get(kind))(place);
    }
    cx.seen.push(made);
    return made;
  },
};

const READERS = new PlainMap([
  ...'aoemsdrlxb'.split('').map((tag) => [tag, Codec.prototype.readCopied]),
  ['u', () => undefined],
  ['n', function ([, word], cx) {
    must(['-0', 'NaN', 'Infinity', '-Infinity'].includes(word));
    if (word !== '-0') this.odd(cx);
    return Number(word);
  }],
  ['i', ([, digits]) => (must(/^-?\d{1,1000000}$/.test(digits)), BigInt(digits))],
  ['y', ([, key]) => (must(typeof key === 'string'), Symbol.for(key))],
  ['w', ([, name]) => {
    for (const [symbol, known] of symbols) if (known === name) return symbol;
    throw new Broken('no such symbol');
  }],
  ['h', function ([, id, description], cx) {
    if (id < 0) {
      const symbol = this.owned(-id);
      must(typeof symbol === 'symbol');
      return symbol;
    }
    must(isId(id) && typeof description === 'string');
    if (!this.theirs.has(id)) {
      const symbol = Symbol(description);
      this.theirs.set(id, symbol);
      this.theirSymbols.set(symbol, id);
    }
    const symbol = this.theirs.get(id);
    must(typeof symbol === 'symbol');
    return symbol;
  }],
  ['c', ([, at], cx) => (must(Number.isInteger(at) && at >= 0 && at < cx.seen.length), cx.seen[at])],
  ['t', function ([, id]) {
    const thing = this.owned(id);
    must(typeof thing !== 'symbol');
    return thing;
  }],
  ['B', function ([, name], cx) {
    must(typeof name === 'string' && this.mayRead(name) && things.has(name));
    return this.named(things.get(name), name, cx);
  }],
  ['P', function (form, cx) { return this.readPromise(form, cx); }],
]);

module.exports = { Broken, Codec, isFull, isId, leaves, longer, must, stepOf };
