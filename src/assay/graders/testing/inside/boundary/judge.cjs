// The judge's side: stands in for what a submission has, and hands it what tests give to it.
//
// A stand-in is a proxy over an object of ours; every trap asks the solution host and copies the
// answer. Nothing that the host says is run, or names anything but an entry of our own tables.
'use strict';

const { AssertionError } = require('node:assert');
const { AsyncResource } = require('node:async_hooks');
const { writeSync } = require('node:fs');
const { relative } = require('node:path');

const { names, replaceable, shared, symbols, things } = require('./builtins.cjs');
const { isId, must } = require('./codec.cjs');
const { Peer } = require('./peer.cjs');

const { apply, construct, defineProperty, get, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
const { create, is, setPrototypeOf } = Object;
const { isArray } = Array;
const enqueue = setImmediate; // a microtask is not part of the test to node
const ofFunctions = Function.prototype;
const NOT_STATIC = new Set(['length', 'name', 'prototype', 'arguments', 'caller']);

class Judge extends Peer {
  // `loose` names classes and functions that may decide by themselves; `current` gives the test
  // that runs ({ended, failure}); `lost` is called when the host can say no more, `undecided` with
  // the name of what `loose` would have to name.
  constructor(link, { root, patience, loose, current, lost, undecided }) {
    super(link, patience);
    this.loose = new Set(loose.map((name) => name.slice(name.lastIndexOf('.') + 1)));
    this.current = current;
    this.lost = lost;
    this.undecided = undecided;
    this.infos = new WeakMap(); // target or stand-in: {id, kind, name, prototype}
    this.idle = true;
    this.room = 16 * 1024; // for what the submission prints
    this.root = root;
    this.plain = new Map(); // stand-in of a prototype: that of copies
    this.handles = new Map(); // id: what the host may call, and on behalf of which test
    this.bound = new WeakMap();
    this.variables = new Map(); // of the environment, that a test has changed
    this.raised = new WeakMap(); // error of a callback: where it was called
    this.traps = this.makeTraps();
    this.surroundings();
    this.remember();
  }

  // Called where an answer is waited for, and at the end of the host: nobody minds it if nothing
  // more was to come.
  ended(why) {
    if (this.nested === 0 && this.idle && this.answers.size === 0) return;
    this.lost(why);
    throw new Error(`the submission's process: ${why}`);
  }

  // What the test says would be the submission's word: the test fails, whatever becomes of this.
  decided(name, what) {
    const message = `${name || 'an object'} ${what}; allow_equality may name it`;
    if (name) this.undecided(name);
    const error = new AssertionError({ message, operator: 'boundary' });
    this.blame(error);
    return error;
  }

  blame(error, test = this.current()) {
    if (error instanceof AssertionError && test) test.failure ??= `${error.message}`;
  }

  mayName() {
    return true;
  }

  mayRead(name) {
    return shared.has(name);
  }

  isPlain(found) {
    return 'value' in found;
  }

  post(message) {
    this.idle = false;
    super.post(message);
    this.link.hold(); // until the host says that it has nothing more to do
  }

  request(op, ...body) {
    this.scope = new AsyncResource('SubmissionCall');
    this.mirror();
    return super.request(op, ...body);
  }

  // Changed arguments are taken where the call gives back nothing that a test could compare them with.
  conclude({ ok, value, changes, form }, name = '') {
    if (!ok) throw value;
    const opaque = value === undefined || form?.[0] === 'P' || this.infos.has(value);
    if (changes && !opaque && !this.loose.has(name)) {
      throw this.decided(name, 'changed its argument and returned a value');
    }
    for (const change of changes ?? []) this.decode(change, { fill: true });
    return value;
  }

  readAnswer(ok, form, changes) {
    const changed = [];
    must(typeof ok === 'boolean' && (changes === null || isArray(changes)));
    const value = this.decode(form, { same: true, changed });
    return { ok, value, changes: changes ?? (changed.length > 0 ? [] : null), form };
  }

  // ---- what is given to the host

  foreign(value, cx) {
    if (typeof value === 'function') return this.writeHandle(value, cx);
    const prototype = getPrototypeOf(value);
    if (prototype?.constructor?.name === 'TestContext' || prototype?.constructor?.name === 'SuiteContext') {
      throw new TypeError('the context of a test cannot be given to the submission');
    }
    const id = this.tell(value, false);
    const isNew = this.isNews(id, cx);
    cx.seen.set(value, cx.seen.size);
    const methods = [];
    let base = null;
    for (let at = value; at !== null && at !== Object.prototype; at = getPrototypeOf(at)) {
      const builtin = names.get(at);
      if (builtin !== undefined && shared.has(builtin)) base ??= builtin;
      if (isNew) this.writeMethods(value, at, builtin !== undefined, cx, methods);
    }
    return ['J', id, base, this.pairs(value, cx), methods];
  }

  writeMethods(value, owner, builtin, cx, told) {
    for (const key of ownKeys(owner)) {
      const found = getOwnPropertyDescriptor(owner, key);
      const plain = typeof key === 'string' ? !builtin || !key.startsWith('_') : symbols.has(key);
      if (key === 'constructor' || !plain) continue;
      const known = told.some((_, at) => at % 3 === 0 && told[at] === key);
      if (known) continue;
      if (found.get !== undefined) told.push(this.write(key, cx), 'get', this.writeHandle(() => get(value, key), cx));
      else if (owner !== value && typeof found.value === 'function') {
        const method = found.value;
        told.push(this.write(key, cx), 'call', this.writeHandle((...given) => apply(method, value, given), cx));
      }
    }
  }

  writeHandle(value, cx) {
    const id = this.tell(value, false);
    const test = this.current();
    this.handles.set(id, { value, test, scope: new AsyncResource('SubmissionCallback') });
    if (!this.isNews(id, cx)) return ['F', id];
    const base = names.get(value.prototype);
    const statics = this.pairs(value, cx, (key) => !NOT_STATIC.has(key), true);
    return ['F', id, `${value.name}`, value.length, shared.has(base) ? base : null, statics];
  }

  prototypeOf(prototype) {
    for (let at = prototype; at !== null; at = getPrototypeOf(at)) {
      const known = this.theirIds.get(at);
      if (known !== undefined) return ['t', known.id];
      if (shared.has(names.get(at))) return ['B', names.get(at)];
    }
    return null;
  }

  rejecting(tell) {
    const test = this.current();
    return (error) => {
      this.blame(error, test);
      tell(error);
    };
  }

  perform(op, [id, self, forms], answer) {
    must((op === 'call' || op === 'new') && isArray(forms), 'there is no such request');
    const handle = this.handles.get(id);
    must(handle !== undefined, 'it calls what it was not given');
    const given = forms.map((form) => this.decode(form, { fill: true }));
    const on = this.decode(self, { fill: true });
    if (handle.test?.ended) throw new Error('the test that gave this function has ended');
    const changes = this.watch(given);
    const run = () => (op === 'new' ? construct(handle.value, given) : apply(handle.value, on, given));
    try {
      answer(true, handle.scope.runInAsyncScope(run), changes);
    } catch (error) {
      this.blame(error, handle.test);
      if (typeof error === 'object' && error !== null) this.raised.set(error, handle.scope);
      throw error;
    }
  }

  note(kind, body) {
    if (kind === 'idle') {
      this.idle = body[0] === this.sent;
      if (this.idle) this.link.release();
    } else if (kind === 'printed') {
      const [name, text] = body;
      must((name === 'stdout' || name === 'stderr') && typeof text === 'string');
      const shown = text.slice(0, this.room);
      this.room -= shown.length;
      if (shown !== '') writeSync(name === 'stdout' ? 1 : 2, shown);
    } else if (kind === 'uncaught') {
      const error = this.decode(body[0]);
      const scope = this.raised.get(error) ?? this.scope;
      scope.runInAsyncScope(() => enqueue(() => { throw error; }));
    } else super.note(kind, body);
  }

  // ---- what tests change around them

  // process.env and the working directory, watched rather than read before each call.
  surroundings() {
    const { env, chdir } = process;
    const changed = (key) => this.variables.set(key, env[key]);
    process.env = new Proxy(env, {
      set: (target, key, value) => ((target[key] = value), changed(key), true),
      deleteProperty: (target, key) => (delete target[key], changed(key), true),
      defineProperty: (target, key, found) => (defineProperty(target, key, found), changed(key), true),
    });
    const follow = () => this.post(['n', 'cwd', relative(this.root, process.cwd()), process.cwd()]);
    process.chdir = (place) => {
      apply(chdir, process, [place]);
      follow();
    };
    if (process.cwd() !== this.root) follow();
  }

  // Whatever is changed from now on, a test changes.
  remember() {
    this.values = replaceable.map(([owner, , key]) => owner[key]);
    this.globals = new Map(ownKeys(globalThis).map((key) => [key, undefined]));
  }

  mirror() {
    if (this.variables.size > 0) {
      const changed = [...this.variables].filter(([key]) => typeof key === 'string');
      this.variables.clear();
      this.post(['n', 'env', this.encode(changed)]);
    }
    const changes = [];
    for (let at = 0; at < replaceable.length; at += 1) {
      const [owner, name, key, plain] = replaceable[at];
      const value = owner[key];
      if (is(value, this.values[at])) continue;
      this.values[at] = value;
      this.change(changes, name, key, value, is(value, plain) || value === undefined);
    }
    for (const key of ownKeys(globalThis)) {
      const known = this.globals.get(key);
      if (this.globals.has(key) && known === undefined) continue;
      const value = globalThis[key];
      if (is(value, known)) continue;
      this.globals.set(key, value);
      this.change(changes, 'globalThis', key, value, false);
    }
    if (changes.length > 0) this.post(['n', 'patch', ...changes]);
  }

  change(changes, name, key, value, restored) {
    if (typeof key !== 'string') return;
    try {
      changes.push([name, key, restored ? ['_'] : this.encode(value)]);
    } catch {
      // What cannot cross is not seen at the other side.
    }
  }

  // ---- what stands in for the submission's

  readPrototype(form, cx) {
    if (form === null) return null;
    must(isArray(form) && (form[0] === 'R' || (form[0] === 'B' && /^%|prototype$/.test(form[1]))));
    return this.read(form, cx);
  }

  readForeign(form, cx) {
    const [tag, id, kind] = form;
    must(tag === 'R' && isId(id) && id > 0, 'a form of an unknown kind');
    if (form.length === 2) {
      must(this.infos.has(this.theirs.get(id)), 'it speaks of what it never told');
      return this.theirs.get(id);
    }
    must(!this.theirs.has(id) || this.theirs.get(id) instanceof WeakRef, 'one thing is told twice');
    if (kind === 'f') return this.readFunction(form, cx);
    must(kind === 'o' || kind === 'p');
    const prototype = this.readPrototype(form[kind === 'o' ? 3 : 4], cx);
    const name = kind === 'p' ? form[3] : this.infos.get(prototype)?.name ?? '';
    must(typeof name === 'string');
    return this.standIn(create(prototype), { id, kind, name });
  }

  readFunction([, id, , name, length, flags, prototype, parent], cx) {
    must(typeof name === 'string' && Number.isInteger(flags) && typeof length === 'number');
    const isClass = (flags & 1) === 1;
    const target = isClass ? function () {} : () => {};
    defineProperty(target, 'name', { value: name, configurable: true });
    defineProperty(target, 'length', { value: length, configurable: true });
    if (isClass) target.prototype = this.readPrototype(prototype, cx) ?? {};
    if (parent !== null) {
      const above = this.read(parent, cx);
      must(typeof above === 'function');
      setPrototypeOf(target, above);
    }
    return this.standIn(target, { id, kind: 'f', name, isClass, answers: (flags & 2) === 2 });
  }

  standIn(target, info) {
    const made = new Proxy(target, this.traps);
    info.target = target;
    this.infos.set(target, info).set(made, info);
    return this.meet(info.id, made, false);
  }

  ask(op, thing, ...given) {
    const { id } = this.infos.get(thing);
    const { ok, value } = this.request(op, id, ...given.map((one) => this.encode(one)));
    if (!ok) throw value;
    return value;
  }

  // What a file of the judge's asks for that is not here.
  load(from, name, how) {
    const { ok, value } = this.request('load', relative(this.root, from), name, how);
    if (!ok) throw value;
    return value;
  }

  // What a class of the test that extends one of the submission's has of its own for a key.
  overridden(target, key) {
    for (let at = getPrototypeOf(target); at !== null && !this.infos.has(at); at = getPrototypeOf(at)) {
      const found = getOwnPropertyDescriptor(at, key);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  overrides(prototype) {
    const told = [];
    for (let at = prototype; at !== null && !this.infos.has(at); at = getPrototypeOf(at)) {
      for (const key of ownKeys(at)) {
        const { value } = getOwnPropertyDescriptor(at, key);
        if (key !== 'constructor' && typeof value === 'function' && !told.includes(key)) {
          told.push(key, this.encode(value));
        }
      }
    }
    return told;
  }

  // Symbols that only this process knows are answered here.
  isForeign(key) {
    return typeof key !== 'symbol' || symbols.has(key) || this.theirSymbols.has(key) || Symbol.keyFor(key) !== undefined;
  }

  makeTraps() {
    const judge = this;
    const isLocal = (target, key) =>
      !judge.isForeign(key) || (typeof target === 'function' && (NOT_STATIC.has(key) || (key in ofFunctions && !(key in Object.prototype))));
    return {
      get(target, key, receiver) {
        const info = judge.infos.get(target);
        if (key === Symbol.hasInstance && info.kind === 'f') {
          if (!info.answers || judge.loose.has(info.name)) return ofFunctions[Symbol.hasInstance];
          return () => { throw judge.decided(info.name, 'answers instanceof by itself'); };
        }
        const own = info.derived ? judge.overridden(target, key) : undefined;
        if (own !== undefined) return own.get === undefined ? own.value : apply(own.get, receiver, []);
        if (isLocal(target, key)) return get(target, key);
        const other = judge.infos.has(receiver) && judge.infos.get(receiver) !== info ? [receiver] : [];
        const value = judge.ask('get', target, key, ...other);
        if (key === 'then' && typeof value === 'function' && !judge.loose.has(info.name)) {
          throw judge.decided(info.name, 'is awaited, but is no Promise');
        }
        return value;
      },
      set(target, key, value, receiver) {
        const own = judge.infos.get(target).derived ? judge.overridden(target, key) : undefined;
        if (own?.set !== undefined) apply(own.set, receiver, [value]);
        else if (!judge.isForeign(key)) target[key] = value;
        else return judge.ask('set', target, key, value);
        return true;
      },
      has: (target, key) => (isLocal(target, key) ? key in target : judge.ask('has', target, key)),
      deleteProperty: (target, key) => judge.ask('delete', target, key),
      defineProperty(target, key, found) {
        if (found.configurable === false || !judge.isForeign(key)) defineProperty(target, key, found);
        return judge.ask('define', target, key, found);
      },
      getOwnPropertyDescriptor(target, key) {
        if (isLocal(target, key) || getOwnPropertyDescriptor(target, key)?.configurable === false) {
          return getOwnPropertyDescriptor(target, key);
        }
        const found = judge.ask('describe', target, key);
        if (found === undefined) return undefined;
        const [enumerable, writable, value, getter, setter] = found;
        const kept = getter || setter ? { get: getter, set: setter } : { value, writable };
        return { ...kept, enumerable, configurable: true };
      },
      ownKeys(target) {
        const told = judge.ask('keys', target);
        must(isArray(told) && told.every((key) => typeof key === 'string' || typeof key === 'symbol'));
        return [...new Set([...told.filter((key) => !isLocal(target, key)), ...ownKeys(target)])];
      },
      apply(target, self, given) {
        const info = judge.infos.get(target);
        const answer = judge.request('call', info.id, judge.encode(self), given.map((one) => judge.encode(one)));
        return judge.conclude(answer, info.name);
      },
      construct(target, given, made) {
        const info = judge.infos.get(target);
        const derived = judge.infos.get(made) !== info;
        const overrides = derived ? judge.overrides(made.prototype) : null;
        const answer = judge.request('new', info.id, given.map((one) => judge.encode(one)), overrides);
        const value = judge.conclude(answer, info.name);
        must(typeof value === 'object' && value !== null);
        if (derived) {
          const own = judge.infos.get(value);
          if (own === undefined) return setPrototypeOf(value, made.prototype);
          own.derived = true;
          setPrototypeOf(own.target, made.prototype);
        }
        return value;
      },
    };
  }

  // ---- what is compared

  // A value in which instances of the submission's classes are copies, taken once. `empty` gets
  // those of which nothing can be compared.
  still(value, copies, empty) {
    if (typeof value !== 'object' || value === null) return value;
    if (copies.has(value)) return copies.get(value);
    const info = this.infos.get(value);
    if (info !== undefined) return this.stillInstance(value, info, copies, empty);
    if (!this.holds(value, new Set())) return value;
    const next = (item) => this.still(item, copies, empty);
    const copy = isArray(value) ? [] : value instanceof Map ? new Map() : value instanceof Set ? new Set() : create(getPrototypeOf(value));
    copies.set(value, copy);
    if (isArray(value)) copy.length = value.length;
    if (copy instanceof Map) value.forEach((item, key) => copy.set(next(key), next(item)));
    if (copy instanceof Set) value.forEach((item) => copy.add(next(item)));
    for (const key of ownKeys(value)) {
      const found = getOwnPropertyDescriptor(value, key);
      if (found.enumerable) defineProperty(copy, key, { ...WRITABLE, value: next(value[key]) });
    }
    return copy;
  }

  stillInstance(value, info, copies, empty) {
    if (typeof value === 'function') return value;
    const [kind, content, told] = this.ask('fields', value);
    must(isArray(told) && (kind === 'o' || kind === 'd' || isArray(content)));
    const copy =
      kind === 'm' ? new Map() : kind === 's' ? new Set() : kind === 'a' ? [] : kind === 'd' ? new Date(content) : {};
    copies.set(value, copy);
    const next = (item) => this.still(item, copies, empty);
    if (kind === 'm') for (const [key, item] of content) copy.set(next(key), next(item));
    else if (kind === 's') for (const item of content) copy.add(next(item));
    else if (kind === 'a') for (const item of content) copy.push(next(item));
    for (const [key, item] of told) defineProperty(copy, key, { ...WRITABLE, value: next(item) });
    setPrototypeOf(copy, this.plainPrototype(getPrototypeOf(value)));
    if (kind === 'o' && told.length === 0 && !this.loose.has(info.name)) empty.set(info.id, info.name);
    return copy;
  }

  // The prototype of copies: below a proxy, V8 takes an array for an object.
  plainPrototype(prototype) {
    if (!this.infos.has(prototype)) return prototype;
    if (!this.plain.has(prototype)) {
      const made = create(this.plainPrototype(getPrototypeOf(prototype)));
      defineProperty(made, 'constructor', { value: { name: this.infos.get(prototype).name } });
      this.plain.set(prototype, made);
    }
    return this.plain.get(prototype);
  }

  // Whether an instance of the submission's is part of a value.
  holds(value, seen) {
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null || seen.has(value)) return false;
    if (this.infos.has(value)) return typeof value === 'object';
    if (typeof value === 'function') return false;
    seen.add(value);
    if (value instanceof Map) for (const [key, item] of value) if (this.holds(key, seen) || this.holds(item, seen)) return true;
    if (value instanceof Set) for (const item of value) if (this.holds(item, seen)) return true;
    if (ArrayBuffer.isView(value)) return false;
    return ownKeys(value).some((key) => {
      const found = getOwnPropertyDescriptor(value, key);
      return found.enumerable && 'value' in found && this.holds(found.value, seen);
    });
  }

  // A comparison of copies; `negated` if equality makes it fail.
  comparing(original, negated) {
    const judge = this;
    const compare = function (actual, expected, ...others) {
      if (arguments.length < 2) return apply(original, this, arguments);
      const sides = [new Map(), new Map()];
      const copies = new Map();
      const still = [actual, expected].map((value, at) => judge.still(value, is(actual, expected) ? copies : new Map(), sides[at]));
      for (const [one, other] of [sides, [sides[1], sides[0]]]) {
        for (const [id, name] of one) {
          if (!other.has(id) && !negated) {
            throw judge.decided(name, 'has nothing that could be compared');
          }
        }
      }
      return apply(original, this, [...still, ...others]);
    };
    defineProperty(compare, 'name', { value: original.name });
    return compare;
  }

  guardComparisons() {
    const assert = require('node:assert');
    const made = new Map();
    for (const api of [assert, assert.strict, require('node:util')]) {
      for (const name of COMPARISONS) {
        if (typeof api[name] !== 'function') continue;
        if (!made.has(api[name])) made.set(api[name], this.comparing(api[name], name.startsWith('not')));
        api[name] = made.get(api[name]) ?? api[name];
      }
    }
    require('node:module').syncBuiltinESMExports();
  }
}

const WRITABLE = { enumerable: true, writable: true, configurable: true };
const COMPARISONS = [
  'deepEqual', 'deepStrictEqual', 'notDeepEqual', 'notDeepStrictEqual', 'partialDeepStrictEqual', 'isDeepStrictEqual',
];

module.exports = { Judge };
