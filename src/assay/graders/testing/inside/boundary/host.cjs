// The process in which a submission is loaded and called. What it is asked comes from the judge,
// and is trusted; what it says is believed by nobody.
'use strict';

const { createRequire, syncBuiltinESMExports } = require('node:module');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const { types } = require('node:util');

const { names, replaceable, shared, things } = require('./builtins.cjs');
const { KINDS, isIndex, labelled, must, put } = require('./codec.cjs');
const { open } = require('./link.cjs');
const { Peer } = require('./peer.cjs');

const { apply, construct, defineProperty, deleteProperty, get, getOwnPropertyDescriptor, getPrototypeOf, has, ownKeys, set } = Reflect;
const { create, hasOwn } = Object;
const { isGeneratorFunction, isPromise } = types;
const hasInstance = Function.prototype[Symbol.hasInstance];
const { reallyExit, chdir } = process;
const { then } = Promise.prototype;
const later = setImmediate;
const { stringify } = JSON;
const CONVERSIONS = new Set(['toJSON', 'toString', 'valueOf']);
const MOST_KEPT = 1000;
const LINK = 3; // a descriptor, of hosts.cjs

// The prototypes of something that are not node's own, and what is computed by them.
function* classesOf(value) {
  for (let at = getPrototypeOf(value); at !== null && !names.has(at); at = getPrototypeOf(at)) yield at;
}

function gettersOf(value) {
  const isComputed = (one) => (key) => typeof key === 'string' && getOwnPropertyDescriptor(one, key).get;
  return new Set([...classesOf(value)].flatMap((one) => ownKeys(one).filter(isComputed(one))));
}

// What is read; nothing, if that fails.
function reading(read) {
  try {
    return read();
  } catch {
    return undefined;
  }
}

const isObject = (value) => (typeof value === 'object' && value !== null) || typeof value === 'function';

class Host extends Peer {
  constructor(link) {
    super(link, 2 ** 31 - 1);
    this.root = process.cwd();
    this.isTrusting = true;
    this.kept = []; // the last copies, that they may be known again
    this.turn = 0;
    this.loaded = new Map();
  }

  ended() {
    reallyExit.call(process, 0);
  }

  take(text) {
    this.link.release(); // work has come: what keeps the loop alive now is the submission's
    super.take(text);
  }

  foreign(value, cx) {
    if (!cx.deep) return ['R', this.introduce(value, () => this.describe(value))];
    return typeof value === 'function' ? ['f', this.tell(value)] : this.content(value, cx);
  }

  describe(value) {
    const prototype = getPrototypeOf(value);
    if (typeof value !== 'function') return ['o', this.prototypeOf(prototype)];
    const isClass = isObject(value.prototype) && !isGeneratorFunction(value);
    const isWritten = getOwnPropertyDescriptor(value, 'prototype')?.writable === false; // as a class
    let base = isClass ? value.prototype : null;
    while (base !== null && !names.has(base)) base = getPrototypeOf(base);
    const above = names.get(base)?.replace(/\.prototype$/, '') ?? 'Object';
    return [
      'f', isClass ? this.prototypeOf(value.prototype) : null, `${value.name ?? ''}`, Number(value.length) || 0,
      prototype === Function.prototype || typeof prototype !== 'function' ? null : this.encode(prototype),
      isClass, isClass && (isWritten || above !== 'Object') ? above : null, value[Symbol.hasInstance] !== hasInstance,
    ];
  }

  prototypeOf(prototype, cx) {
    if (prototype === null) return null;
    if (shared.has(names.get(prototype))) return ['B', names.get(prototype)];
    const above = () => this.prototypeOf(getPrototypeOf(prototype), cx);
    if (cx?.deep) return above();
    const made = getOwnPropertyDescriptor(prototype, 'constructor')?.value;
    return ['R', this.introduce(prototype, () => ['p', above(), typeof made === 'function' ? `${made.name}` : ''])];
  }

  // What the class of an error computes is told once, with the error.
  pairs(value, cx, ...wanted) {
    const told = super.pairs(value, cx, ...wanted);
    for (const key of types.isNativeError(value) ? gettersOf(value) : []) {
      const found = reading(() => value[key]);
      const isTold = ['string', 'boolean'].includes(typeof found) || Number.isFinite(found);
      if (isTold && !hasOwn(value, key)) told.push(['-', key], found);
    }
    return told;
  }

  // An instance as a value: the names of its classes, what it contains, its own properties.
  content(value, cx) {
    cx.seen.set(value, cx.seen.size);
    const kind = Object.keys(KINDS).find((name) => name !== 'Error' && KINDS[name].is(value)) ?? 'Object';
    const above = [...classesOf(value)];
    const classes = above.map((one) => `${getOwnPropertyDescriptor(one, 'constructor')?.value?.name}`);
    const computed = gettersOf(value);
    const parts = KINDS[kind].write(value, this, cx);
    const isOwn = (key) => typeof key === 'string' && (kind === 'Object' || !isIndex(key)) && getOwnPropertyDescriptor(value, key)?.enumerable;
    const told = ownKeys(value).filter(isOwn).map((key) => [key, this.write(value[key], cx)]);
    // What shows nothing that it holds is what its classes compute of that.
    const shown = kind !== 'Object' || told.length > 0 || cx.computed ? [] : [...computed, ...above.flatMap((one) => ownKeys(one).filter((key) => CONVERSIONS.has(key)))];
    for (const key of cx.computed ? computed : []) told.push([['-', key], this.write(value[key], cx)]);
    for (const key of shown) told.push([key, this.write(reading(() => (CONVERSIONS.has(key) ? value[key]() : value[key])), cx)]);
    return [kind, this.tell(value), 0, parts, told.flat(1), classes];
  }

  // A function or an object of the judge's.
  described(kind, base, name, length) {
    if (kind === 's') return Symbol(name);
    if (kind === 'J') return create(base === null ? Object.prototype : things.get(base));
    const peer = this;
    const called = function (...given) {
      const made = new.target !== undefined;
      const body = [made ? undefined : this, ...given].map((one) => peer.encode(one));
      return peer.conclude(peer.request(made ? 'new' : 'call', [peer.theirIds.get(called).id, ...body]));
    };
    if (base !== null) called.prototype = things.get(base);
    return labelled(called, name, length);
  }

  readForeign([tag, id, more], cx) {
    if (tag === 'N') {
      const made = id.slice(3).reduce((at, key) => at[key], this.loaded.get(`${id.slice(0, 3)}`));
      return construct(made, more.map((one) => this.read(one, cx)));
    }
    must(tag === 'J');
    cx.seen.push(this.met(id));
    return this.define(this.met(id), more, cx);
  }

  // What comes back of ours may have been changed by a test: then it is changed here, too.
  // The same argument again, unchanged, is the same here.
  decode(form, settings) {
    return super.decode(form, { fill: true, same: true, ...settings });
  }

  keep(thing) {
    this.kept[(this.turn = (this.turn + 1) % MOST_KEPT)] = thing;
  }

  meet(id, thing, copied) {
    if (copied) this.keep(thing);
    return super.meet(id, thing, copied);
  }

  tell(thing, copied) {
    if (copied) this.keep(thing);
    return super.tell(thing, copied);
  }

  perform(op, [first, ...forms], answer) {
    if (op === 'load') return this.load(answer, first, ...forms);
    if (op === 'made') return answer(true, stringify(forms.map((recipe) => this.made(recipe))));
    const given = forms.map((form) => this.decode(form));
    const changes = this.watch(given);
    const value = apply(OPERATIONS[op], this, [this.owned(first), ...given]);
    if (isPromise(value) && !this.theirIds.has(value)) this.writePromise(value, changes);
    return answer(true, value, changes);
  }

  // What an instance holds that is made of plain values; null if it cannot be made.
  made(recipe) {
    try {
      return this.encode(this.decode(recipe), { deep: true });
    } catch {
      return null;
    }
  }

  load(answer, relative, name, how) {
    const from = path.join(this.root, relative);
    process.argv[1] ??= from;
    const near = createRequire(from);
    const keep = (found) => this.loaded.set(`${[relative, name, how]}`, found) && found;
    if (how === 'require') return answer(true, keep(near(name)));
    const place = /^[./]/.test(name) ? new URL(name, pathToFileURL(from)).href : /^\w+:/.test(name) ? name : pathToFileURL(near.resolve(name)).href;
    return import(place).then((found) => answer(true, keep(found)), (error) => answer(false, error));
  }

  note(kind, body) {
    if (kind === 'patch') this.patch(body);
    else if (kind === 'turn') later(() => this.post(['n', 'quiet']));
    else if (kind === 'follow') body.forEach((form) => this.decode(form, { follows: true }));
    else if (kind === 'hold') this.own.set(body[0], this.owned(body[0]));
    else if (kind === 'cwd') chdir.call(process, body[0].startsWith('..') ? body[1] : path.join(this.root, body[0]));
    else if (kind === 'more') {
      const [id, computed, pairs] = body;
      const thing = this.define(this.met(id), pairs, { seen: [], depth: 0 });
      const getters = this.define({}, computed, { seen: [], depth: 0 });
      for (const key of ownKeys(getters)) defineProperty(thing, key, { get: () => getters[key](), configurable: true });
    } else super.note(kind, body);
  }

  // What a test put in the place of something of node's, and variables; without a value, it is as it was.
  patch(changes) {
    for (const [name, key, ...forms] of changes) {
      const owner = name === 'process.env' ? process.env : things.get(name);
      const plain = replaceable.find((one) => one.owner === owner && one.key === key)?.plain;
      const [value = plain] = forms.map((form) => this.decode(form));
      if (value === undefined) deleteProperty(owner, key);
      else put(owner, key, value);
    }
    syncBuiltinESMExports();
  }
}

const OPERATIONS = {
  __proto__: null,
  get, set, has, deleteProperty, defineProperty, ownKeys,
  call: (thing, self, ...given) => apply(thing, self, given),
  // With functions of a class of the test that extends ours.
  new(thing, overrides, ...given) {
    if (overrides === null) return construct(thing, given);
    const made = class extends thing {};
    for (const [key, value] of overrides) put(made.prototype, key, value, false);
    return construct(thing, given, made);
  },
  getOwnPropertyDescriptor(thing, key) {
    const found = getOwnPropertyDescriptor(thing, key);
    return found && [found.enumerable, found.writable ?? true, found.value, found.get, found.set];
  },
  content(thing, computed) { return stringify(this.encode(thing, { deep: true, computed })); },
  iterate(thing, key) { return this.tell(apply(thing[key], thing, [])); },
  // The next value of an iterator.
  step(iterator, how, ...given) {
    const told = ({ done, value }) => [Boolean(done), value];
    const result = iterator[how] === undefined ? { done: true, value: given[0] } : apply(iterator[how], iterator, given);
    return isPromise(result) ? apply(then, result, [told]) : told(result);
  },
};

// What the submission prints is shown beside what the tests print, as far as there is room.
function forwardOutput(host) {
  let room = 16 * 1024;
  for (const name of ['stdout', 'stderr']) {
    const { write } = process[name];
    process[name].write = (chunk, ...others) => {
      const text = `${chunk}`.slice(0, room);
      room -= text.length;
      if (text !== '') host.post(['n', 'printed', name, text]);
      return apply(write, process[name], [chunk, ...others]);
    };
  }
}

function main() {
  const link = open(LINK, true);
  const host = new Host(link);
  process.on('beforeExit', () => {
    link.hold();
    host.post(['n', 'idle', host.taken]);
  });
  process.on('uncaughtException', (error) => host.post(['n', 'uncaught', host.encode(error)]));
  process.exit = (code) => {
    throw new Error(`process.exit(${code ?? ''}) was called`);
  };
  forwardOutput(host);
  link.hold();
  process.argv.splice(1);
}

main();
