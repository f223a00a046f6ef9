// Values as plain JSON and back. What is copied here is a copy at the other end; all else - functions,
// instances of classes - is for the two ends to give a form (`foreign`) and to read one.
//
// A form is null, a boolean, a number, a string or an array that begins with a tag. There are no
// objects in it, so that nothing is ever looked up by a name that the other end chose.
'use strict';

const { isDeepStrictEqual, types } = require('node:util');
const { names, shared, things } = require('./builtins.cjs');

const { apply, defineProperty, deleteProperty, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
const { create, freeze, is, isFrozen, setPrototypeOf } = Object;
const { isArray } = Array;
const { isFinite } = Number;
const { stringify } = JSON;
const { isProxy, isPromise, isNativeError } = types;
// Tests may put others in their place.
const { DOMException: PlainDOMException, Date: PlainDate, Error: PlainError, Map: PlainMap, Set: PlainSet, RegExp: PlainRegExp, URL: PlainURL } = globalThis;
const { captureStackTrace } = Error;
const bytesOf = Buffer.from;

const DEEPEST = 200;
const LONGEST_ARRAY = 4_000_000;
const LONG_TRAIL = 60;

class Broken extends Error {}

function must(holds, what = 'a form makes no sense') {
  if (!holds) throw new Broken(what);
}

const isId = (id) => Number.isSafeInteger(id) && id !== 0;
const isIndex = (key) => typeof key === 'string' && (key === 'length' || (key >>> 0) + '' === key);

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
  } else if (form[0] === 'N') {
    for (const n of form[2].keys()) yield* leaves(form[2], n);
  } else if (KINDS[form[0]] !== undefined) {
    const [, , , parts, pairs] = form;
    for (const n of parts.keys()) yield* leaves(parts, n);
    for (let n = 1; n < pairs.length; n += 2) yield* leaves(pairs, n);
  } else if (form[0] === 'i') yield [form, 1];
  else if (!'u_c'.includes(form[0])) yield [form, -1];
}

// Whether there is anything in it; undefined if it is nothing itself.
function isFull(form) {
  if (form === null || (isArray(form) && 'uPR'.includes(form[0]))) return undefined;
  for (const [holder, at] of leaves([form], 0)) if (holder[at] !== '') return true;
  return false;
}

function held(thing, why) {
  must(thing !== undefined, why);
  return thing instanceof WeakRef ? thing.deref() : thing;
}

function put(target, key, value, enumerable = true) {
  defineProperty(target, key, { value, enumerable, writable: true, configurable: true });
}

const labelled = (fn, name, length) => Object.defineProperties(fn, { name: { value: name }, length: { value: length } });

function emptied(object) {
  for (const key of ownKeys(object)) deleteProperty(object, key);
  return object;
}

// An instance of a class of one's own, which has the error's constructor, is none.
const isError = (value) =>
  isNativeError(value) || (value instanceof PlainError && !apply(Object.prototype.hasOwnProperty, value, ['constructor']));

// What both ends have and is copied, by the name of its class: its content as forms (`write`), and how one
// is made (`make`) and filled, which may be one that there is. `own` are the keys that cross, too.
const KINDS = {
  __proto__: null,
  Array: {
    is: isArray,
    own: (key) => !isIndex(key),
    hidden: true, // such as `raw` of a template
    write(list, codec, cx) {
      const { length } = list;
      if (length > LONGEST_ARRAY) throw new RangeError('the array is too long to cross');
      return Array.from({ length }, (_, at) => (at in list ? codec.write(list[at], cx) : ['_']));
    },
    make: () => [],
    fill(list, items, codec, cx) {
      emptied(list).length = items.length;
      items.forEach((item, at) => {
        if (!isArray(item) || item[0] !== '_') put(list, at, codec.inside(item, cx, '[]'));
      });
    },
  },
  Date: {
    is: types.isDate,
    write: (date, codec, cx) => [codec.write(apply(PlainDate.prototype.getTime, date, []), cx)],
    make: () => new PlainDate(0),
    fill: (date, [time], codec, cx) => apply(PlainDate.prototype.setTime, date, [codec.read(time, cx)]),
  },
  RegExp: {
    is: types.isRegExp,
    write: ({ source, flags, lastIndex }) => [source, flags, lastIndex],
    make: ([source, flags, last]) => Object.assign(new PlainRegExp(source, flags), { lastIndex: last }),
  },
  URL: {
    is: (value) => { try { return typeof apply(HREF, value, []) === 'string'; } catch { return false; } },
    write: (url) => [url.href],
    make: ([href]) => new PlainURL(href),
  },
  // Its name and message are not its own: only one that is made as such has them.
  DOMException: {
    is: (value) => { try { return typeof apply(NAME, value, []) === 'string'; } catch { return false; } },
    write: ({ message, name }) => [message, name],
    make: ([message, name]) => new PlainDOMException(`${message}`, `${name}`),
  },
  Error: {
    is: isError,
    own: (key) => key !== 'stack' && key !== 'message',
    hidden: true, // those that are not enumerable cross, too
    write(error, codec, cx) {
      const message = getOwnPropertyDescriptor(error, 'message')?.value;
      return [codec.prototypeOf(getPrototypeOf(error), cx), typeof message === 'string' ? message : null];
    },
    make([prototype, message], codec) {
      const error = new PlainError(message ?? undefined);
      setPrototypeOf(error, codec.readPrototype(prototype));
      captureStackTrace(error, KINDS.Error.make);
      return error;
    },
  },
};
const NAME = getOwnPropertyDescriptor(PlainDOMException.prototype, 'name').get;
const HREF = getOwnPropertyDescriptor(PlainURL.prototype, 'href').get;
for (const [Plain, width, add] of [[PlainMap, 2, 'set'], [PlainSet, 1, 'add']]) {
  KINDS[Plain.name] = {
    is: types[`is${Plain.name}`],
    write: (all, codec, cx) => [...apply(Plain.prototype[Symbol.iterator], all, [])].flat(width - 1).map((item) => codec.write(item, cx)),
    make: () => new Plain(),
    fill(all, items, codec, cx) {
      all.clear();
      must(items.length % width === 0);
      for (let at = 0; at < items.length; at += width) {
        all[add](...items.slice(at, at + width).map((item) => codec.inside(item, cx, '[]')));
      }
    },
  };
}
for (const name of ['String', 'Number', 'Boolean']) {
  KINDS[name] = {
    is: types[`is${name}Object`],
    write: (value, codec, cx) => [codec.write(value.valueOf(), cx)],
    make: ([primitive], codec, cx) => Object(codec.read(primitive, cx)),
  };
}
const rawOf = (value) => (types.isArrayBuffer(value) ? bytesOf(value) : bytesOf(value.buffer, value.byteOffset, value.byteLength));
for (const name of Object.getOwnPropertyNames(globalThis).filter((one) => /^(.+Array|(Array)?Buffer|DataView)$/.test(one))) {
  const Plain = globalThis[name];
  KINDS[name] = {
    is: types[`is${name}`] ?? types.isUint8Array,
    write: (value) => [rawOf(value).toString('base64')],
    make([text]) {
      const place = new ArrayBuffer(bytesOf(`${text}`, 'base64').length);
      return name === 'ArrayBuffer' ? place : name === 'Buffer' ? bytesOf(place) : new Plain(place);
    },
    fill: (value, [text]) => bytesOf(`${text}`, 'base64').copy(rawOf(value)),
  };
}
KINDS.Object = {
  is: (value) => !types.isArgumentsObject(value),
  own: () => true,
  write: () => [],
  make: () => ({}),
  fill: emptied,
};
KINDS.Bare = { ...KINDS.Object, make: () => create(null) };
const KIND_OF = new PlainMap(Object.keys(KINDS).map((name) => [globalThis[name]?.prototype ?? null, name]));

class Codec {
  constructor() {
    this.own = new PlainMap(); // id: what we told of, or a WeakRef of it if it was copied
    this.ids = new WeakMap();
    this.theirs = new PlainMap(); // id: what stands here for something of theirs
    this.theirIds = new WeakMap(); // {id, copied}
    this.count = 0;
  }

  // The id of something of ours.
  tell(thing, copied = false) {
    const known = this.ids.get(thing);
    const id = known ?? (this.count += 1);
    this.ids.set(thing, id);
    if (known === undefined || !copied) this.own.set(id, copied ? new WeakRef(thing) : thing);
    return id;
  }

  owned(id) {
    return held(this.own.get(id), 'it speaks of what it was never told');
  }

  meet(id, thing, copied = false) {
    must(isId(id) && id > 0);
    this.theirs.set(id, copied ? new WeakRef(thing) : thing);
    this.theirIds.set(thing, { id, copied });
    return thing;
  }

  met(id) {
    return held(this.theirs.get(id), 'it speaks of what it never told');
  }

  encode(value, settings) {
    return this.write(value, { ...settings, seen: new PlainMap(), depth: 0 });
  }

  // A form as a text that can be compared.
  sketch(value, settings) {
    return stringify(this.encode(value, settings));
  }

  decode(form, settings) {
    return this.read(form, { ...settings, seen: [], depth: 0 });
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
        if (cx.deep || Symbol.keyFor(value) !== undefined) return ['y', `${value.description}`];
        return this.nameOf(value) ?? ['R', this.introduce(value, () => ['s', null, value.description ?? ''])];
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

  // How something is named that the other end has; undefined if it has it not, or a copy.
  nameOf(value) {
    const known = this.theirIds.get(value);
    if (known !== undefined && !known.copied) return ['t', known.id];
    const name = names.get(value);
    return name !== undefined && (shared.has(name) || !this.isTrusting) ? ['B', name] : undefined;
  }

  writeObject(value, cx) {
    const name = this.nameOf(value);
    if (name !== undefined) return name;
    if (isPromise(value)) return cx.deep ? ['u'] : this.writePromise(value);
    const known = this.theirIds.get(value);
    const kind = this.kindOf(value, known);
    if (kind === undefined) return this.foreign(value, cx);
    const ref = cx.recipe ? 0 : known === undefined ? this.tell(value, true) : -known.id;
    cx.seen.set(value, cx.seen.size);
    const { write, own, hidden } = KINDS[kind];
    const frozen = isFrozen(value) ? 1 : 0;
    return [kind, ref, frozen, write(value, this, cx), own === undefined ? [] : this.pairs(value, cx, own, hidden)];
  }

  // As what something can be copied; undefined if it cannot.
  kindOf(value, known) {
    if (typeof value === 'function' || isProxy(value)) return undefined;
    const exact = KIND_OF.get(getPrototypeOf(value));
    const name = exact !== 'DOMException' && isError(value) ? 'Error' : exact;
    const kind = KINDS[name];
    if (kind === undefined || !kind.is(value)) return undefined;
    if (kind.fill !== emptied || known !== undefined) return name;
    // Of what is all data, a copy is told; a submission's that has functions stays where it is.
    const isPlain = (found) => 'value' in found && !(this.isTrusting && typeof found.value === 'function');
    return ownKeys(value).every((key) => isPlain(getOwnPropertyDescriptor(value, key))) ? name : undefined;
  }

  // Own properties as key, value, key, value; with `hidden` also those that are not enumerable.
  pairs(value, cx, wanted, hidden = false) {
    const told = [];
    for (const key of ownKeys(value)) {
      const found = getOwnPropertyDescriptor(value, key);
      if (!wanted(key) || !('value' in found) || !(hidden || found.enumerable)) continue;
      const written = this.write(key, cx);
      told.push(found.enumerable ? written : ['-', written], this.write(found.value, cx));
    }
    return told;
  }

  read(form, cx) {
    if (form === null || ['string', 'boolean', 'number'].includes(typeof form)) return form;
    must(isArray(form) && typeof form[0] === 'string' && cx.depth < DEEPEST);
    cx.depth += 1;
    const value = apply(READERS.get(form[0]) ?? this.readForeign, this, [form, cx]);
    cx.depth -= 1;
    return value;
  }

  // A prototype, by its name or number.
  readPrototype(form) {
    const isNamed = isArray(form) && (form[0] === 'R' || (form[0] === 'B' && /^%|prototype$/.test(form[1])));
    must(form === null || isNamed || this.isTrusting);
    return this.decode(form);
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

  // A copied object: one of ours that comes back, or theirs.
  readCopied([tag, ref, frozen, parts, pairs, classes], cx) {
    must((isId(ref) || ref === 0) && isArray(parts)); // 0 has no name
    const kind = KINDS[tag];
    const ours = ref < 0 ? this.owned(-ref) : cx.follows ? this.theirs.get(ref)?.deref?.() : undefined;
    const fill = ours !== undefined && cx.fill === true;
    const before = fill && cx.filled !== undefined && this.sketch(ours);
    const into = fill && !isFrozen(ours) ? ours : undefined;
    const made = into ?? kind.make(parts, this, cx);
    must(kind.is(made));
    const shown = classes === undefined ? made : this.instance(made, tag, ref, classes, cx);
    cx.seen.push(shown);
    kind.fill?.(made, parts, this, cx);
    this.define(made, pairs, cx);
    if (frozen === 1) freeze(made);
    if (cx.bare || shown !== made || ref === 0) return shown;
    if (before && this.sketch(ours) !== before) cx.filled();
    // A copy of ours comes back: it is ours as long as it has not changed.
    if (ref < 0) return fill || (ours !== undefined && (isNativeError(ours) || isDeepStrictEqual(ours, made))) ? ours : made;
    const old = this.theirs.get(ref)?.deref?.();
    // The same thing again, unchanged, is the same here.
    if (cx.depth === 1 && old !== undefined && cx.same && isDeepStrictEqual(old, made)) return old;
    return this.meet(ref, made, true, cx);
  }

  define(target, pairs, cx) {
    must(isArray(pairs) && pairs.length % 2 === 0);
    for (let at = 0; at < pairs.length; at += 2) {
      const hidden = isArray(pairs[at]) && pairs[at][0] === '-';
      const key = this.read(hidden ? pairs[at][1] : pairs[at], cx);
      must(typeof key === 'string' || typeof key === 'symbol');
      put(target, key, this.inside(pairs[at + 1], cx, stepOf(key)), !hidden);
    }
    return target;
  }

  // What is not copied arrives: NaN, an infinity, what both ends have by a `name`, what is theirs.
  arrive(thing) {
    return thing;
  }
}

const READERS = new PlainMap([
  ...Object.keys(KINDS).map((name) => [name, function (form, cx) { return this.readCopied(form, cx); }]),
  ['u', () => undefined],
  ['n', function ([, word], cx) {
    must(['-0', 'NaN', 'Infinity', '-Infinity'].includes(word));
    return word === '-0' ? -0 : this.arrive(Number(word), cx);
  }],
  ['i', ([, digits]) => (must(/^-?\d{1,1000000}$/.test(digits)), BigInt(digits))],
  ['y', ([, key]) => (must(typeof key === 'string'), Symbol.for(key))],
  ['c', ([, at], cx) => (must(Number.isInteger(at) && at >= 0 && at < cx.seen.length), cx.seen[at])],
  ['t', function ([, id]) { return this.owned(id); }],
  ['R', function ([, id], cx) { return this.arrive(this.met(id), cx); }],
  ['B', function ([, name], cx) {
    must(typeof name === 'string' && things.has(name) && (shared.has(name) || this.isTrusting));
    return this.arrive(things.get(name), cx, name);
  }],
  ['P', function (form, cx) { return this.readPromise(form, cx); }],
]);

module.exports = { Broken, Codec, KINDS, isFull, isId, isIndex, labelled, leaves, longer, must, put, stepOf };
