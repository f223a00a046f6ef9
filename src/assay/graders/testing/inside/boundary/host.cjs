// The process in which a submission is loaded and called. What it is asked comes from the judge,
// and is trusted; what it says is believed by nobody.
'use strict';

const { closeSync } = require('node:fs');
const { createRequire, syncBuiltinESMExports } = require('node:module');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const { types } = require('node:util');

const { names, replaceable, shared, things } = require('./builtins.cjs');
const { must } = require('./codec.cjs');
const { open } = require('./link.cjs');
const { Peer } = require('./peer.cjs');

const { apply, construct, defineProperty, deleteProperty, get, getOwnPropertyDescriptor, getPrototypeOf, has, ownKeys, set } = Reflect;
const { create } = Object;
const { isArray } = Array;
const { isPromise } = types;
const hasInstance = Function.prototype[Symbol.hasInstance];
const { reallyExit, chdir } = process;
const { then } = Promise.prototype;
const { stringify } = JSON;

function isConstructor(value) {
  try {
    construct(Object, [], value);
    return true;
  } catch {
    return false;
  }
}

const isObject = (value) => (typeof value === 'object' && value !== null) || typeof value === 'function';

class Host extends Peer {
  constructor(link) {
    super(link, 2 ** 31 - 1);
    this.root = process.cwd();
    this.kept = new Array(1000); // the last copies, that they may be known again
    this.turn = 0;
    this.loaded = new Map();
  }

  ended(why) {
    if (why !== 'it ended') process._rawDebug(`the judge's link broke: ${why}`);
    reallyExit.call(process, 0);
  }

  mayName(name) {
    return shared.has(name);
  }

  mayRead() {
    return true;
  }

  // Of what is all data, a copy is told; what has functions stays here.
  isPlain(found) {
    return 'value' in found && typeof found.value !== 'function';
  }

  foreign(value, cx) {
    const id = this.tell(value, false);
    this.own.set(id, value);
    if (cx.deep) return typeof value === 'function' ? ['f', id] : this.content(value, id, cx);
    if (!this.isNews(id, cx)) return ['R', id];
    const prototype = getPrototypeOf(value);
    if (typeof value !== 'function') return ['R', id, 'o', this.prototypeOf(prototype, cx)];
    const made = isConstructor(value) ? 1 : 0;
    const asked = value[Symbol.hasInstance] === hasInstance ? 0 : 2;
    const written = getOwnPropertyDescriptor(value, 'prototype')?.writable === false ? 4 : 0;
    const own = made && isObject(value.prototype) ? this.prototypeOf(value.prototype, cx) : null;
    const parent = prototype === Function.prototype || typeof prototype !== 'function' ? null : this.write(prototype, cx);
    return ['R', id, 'f', `${value.name ?? ''}`, Number(value.length) || 0, made + asked + written, own, parent];
  }

  // An instance as a value: the names of its classes, what it contains, its own properties.
  content(value, id, cx) {
    cx.seen.set(value, cx.seen.size);
    const [kind, items] = contentOf(value);
    const classes = [];
    const computed = new Set();
    for (let at = getPrototypeOf(value); at !== null && !names.has(at); at = getPrototypeOf(at)) {
      classes.push(`${getOwnPropertyDescriptor(at, 'constructor')?.value?.name}`);
      for (const key of ownKeys(at)) if (cx.computed && typeof key === 'string' && getOwnPropertyDescriptor(at, key).get) computed.add(key);
    }
    const told = [];
    for (const key of ownKeys(value)) {
      if (typeof key === 'symbol' || !getOwnPropertyDescriptor(value, key)?.enumerable) continue;
      if ((kind === 'a' || kind === 'x') && /^\d+$/.test(key)) continue;
      told.push(key, this.write(value[key], cx));
    }
    const hidden = told.length;
    for (const key of computed) told.push(key, this.write(value[key], cx));
    return ['I', id, classes, kind, items.map((item) => this.write(item, cx)), told, hidden];
  }

  prototypeOf(prototype, cx) {
    if (prototype === null) return null;
    const name = names.get(prototype);
    if (name !== undefined && shared.has(name)) return ['B', name];
    if (cx.deep) return this.prototypeOf(getPrototypeOf(prototype), cx);
    const id = this.tell(prototype, false);
    this.own.set(id, prototype);
    if (!this.isNews(id, cx)) return ['R', id];
    const made = getOwnPropertyDescriptor(prototype, 'constructor')?.value;
    return ['R', id, 'p', typeof made === 'function' ? `${made.name}` : '', this.prototypeOf(getPrototypeOf(prototype), cx)];
  }

  readPrototype(form, cx) {
    return form === null ? null : this.read(form, cx);
  }

  // A function or an object of the judge's.
  readForeign(form, cx) {
    const [tag, id] = form;
    if (tag === 'N') {
      const [, [relative, name, how, ...keys], given] = form;
      const made = keys.reduce((at, key) => at[key], this.loaded.get(`${[relative, name, how]}`));
      return construct(made, given.map((one) => this.read(one, cx)));
    }
    const known = this.theirs.get(id);
    if (tag === 'F') {
      if (form.length === 2) return known;
      const [, , name, length, base, statics] = form;
      const peer = this;
      const called = function (...given) {
        const op = new.target === undefined ? 'call' : 'new';
        const self = peer.encode(op === 'new' ? undefined : this);
        return peer.conclude(peer.request(op, [id, self, given.map((one) => peer.encode(one))]));
      };
      this.meet(id, called, false);
      if (base !== null) called.prototype = things.get(base);
      this.define(called, statics, cx, true);
      defineProperty(called, 'name', { value: name, configurable: true });
      defineProperty(called, 'length', { value: length, configurable: true });
      return called;
    }
    must(tag === 'J');
    const [, , base, pairs, methods] = form;
    const object = known ?? this.meet(id, create(base === null ? Object.prototype : things.get(base)), false);
    cx.seen.push(object);
    for (let at = 0; at < methods.length; at += 3) {
      const value = this.read(methods[at + 2], cx);
      const kind = methods[at + 1] === 'get' ? { get: () => value() } : { value, writable: true };
      defineProperty(object, this.read(methods[at], cx), { ...kind, configurable: true });
    }
    return this.define(object, pairs, cx);
  }

  // What comes back of ours may have been changed by a test: then it is changed here, too.
  // The same argument again, unchanged, is the same here.
  decode(form, settings) {
    return super.decode(form, { fill: true, same: true, ...settings });
  }

  meet(id, thing, copied) {
    if (copied) this.kept[(this.turn = (this.turn + 1) % 1000)] = thing;
    return super.meet(id, thing, copied);
  }

  conclude({ ok, value, changes }) {
    for (const change of changes ?? []) this.decode(change);
    if (!ok) throw value;
    return value;
  }

  perform(op, [first, ...others], answer) {
    if (op === 'load') {
      this.load(first, others[0], others[1], answer);
      return;
    }
    if (op === 'made') {
      answer(true, stringify(first.map((recipe) => this.made(recipe))));
      return;
    }
    const thing = this.owned(first);
    const given = others.map((form) => (op === 'call' || op === 'new' ? form : this.decode(form)));
    if (op === 'content') answer(true, stringify(this.encode(thing, { deep: true, computed: given[0] })));
    else if (op === 'iterate') {
      const iterator = apply(thing[given[0]], thing, []);
      const id = this.tell(iterator, false);
      this.own.set(id, iterator);
      answer(true, id);
    } else if (op === 'call') this.call(thing, others[0], others[1], answer);
    else if (op === 'new') this.make(thing, others[0], others[1], answer);
    else answer(true, OPERATIONS[op](thing, ...given));
  }

  call(thing, self, forms, answer) {
    const given = forms.map((form) => this.decode(form));
    const changes = this.watch(given);
    const value = apply(thing, this.decode(self), given);
    if (isPromise(value)) this.writePromise(value, changes);
    answer(true, value, changes);
  }

  // With `overrides`, functions of a class of the test that extends ours.
  make(thing, forms, overrides, answer) {
    const given = forms.map((form) => this.decode(form));
    const changes = this.watch(given);
    let made = thing;
    if (overrides !== null) {
      made = class extends thing {};
      for (let at = 0; at < overrides.length; at += 2) {
        const value = this.decode(overrides[at + 1]);
        defineProperty(made.prototype, this.decode(overrides[at]), { value, writable: true, configurable: true });
      }
    }
    answer(true, construct(thing, given, made), changes);
  }

  // What an instance holds that is made of plain values; null if it cannot be made.
  made(recipe) {
    try {
      return this.encode(this.decode(recipe), { deep: true });
    } catch {
      return null;
    }
  }

  load(relative, name, how, answer) {
    const from = path.join(this.root, relative);
    process.argv[1] ??= from;
    const near = createRequire(from);
    const keep = (found) => (this.loaded.set(`${[relative, name, how]}`, found), found);
    if (how === 'require') {
      answer(true, keep(near(name)));
      return;
    }
    const place = /^[./]/.test(name) ? new URL(name, pathToFileURL(from)).href : /^\w+:/.test(name) ? name : pathToFileURL(near.resolve(name)).href;
    import(place).then(
      (found) => answer(true, new Map(ownKeys(keep(found)).filter((key) => typeof key === 'string').map((key) => [key, found[key]]))),
      (error) => answer(false, error),
    );
  }

  note(kind, body) {
    if (kind === 'patch') this.patch(body);
    else if (kind === 'cwd') chdir.call(process, body[0].startsWith('..') ? body[1] : path.join(this.root, body[0]));
    else if (kind === 'env') {
      for (const [key, value] of this.decode(body[0])) {
        if (value === undefined) delete process.env[key];
        else process.env[key] = value;
      }
    } else super.note(kind, body);
  }

  // What a test put in the place of something of node's.
  patch(changes) {
    for (const [name, key, form] of changes) {
      const owner = things.get(name);
      const own = replaceable.find(([thing, , known]) => thing === owner && known === key);
      const value = isArray(form) && form[0] === '_' ? own?.[3] : this.decode(form);
      if (value === undefined && form?.[0] === '_') deleteProperty(owner, key);
      else defineProperty(owner, key, { value, writable: true, configurable: true, enumerable: true });
    }
    syncBuiltinESMExports();
  }
}

function contentOf(thing) {
  if (types.isMap(thing)) return ['m', [...apply(Map.prototype.entries, thing, [])].flat(1)];
  if (types.isSet(thing)) return ['s', [...apply(Set.prototype.values, thing, [])]];
  if (isArray(thing)) return ['a', Array.from({ length: thing.length }, (_, at) => thing[at])];
  if (types.isDate(thing)) return ['d', [apply(Date.prototype.getTime, thing, [])]];
  if (types.isBoxedPrimitive(thing)) return ['x', [thing.valueOf()]];
  return ['o', []];
}

const OPERATIONS = {
  __proto__: null,
  get: (thing, key, receiver) => get(thing, key, receiver ?? thing),
  set: (thing, key, value) => set(thing, key, value),
  has: (thing, key) => has(thing, key),
  delete: (thing, key) => deleteProperty(thing, key),
  keys: (thing) => ownKeys(thing),
  define: (thing, key, found) => defineProperty(thing, key, found),
  describe(thing, key) {
    const found = getOwnPropertyDescriptor(thing, key);
    return found && [found.enumerable, found.writable ?? true, found.value, found.get, found.set];
  },
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
  const link = open(Number(process.env.ASSAY_LINK), true);
  delete process.env.ASSAY_LINK;
  const host = new Host(link);
  const { take } = host;
  const taken = Number(process.env.ASSAY_TAKEN ?? 0);
  delete process.env.ASSAY_TAKEN;
  let first = taken > 0;
  host.take = (text) => {
    if (first) closeSync(taken);
    first = false;
    link.release(); // work has come: what keeps the loop alive now is the submission's
    apply(take, host, [text]);
  };
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
