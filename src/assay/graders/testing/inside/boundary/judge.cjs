// The judge's side: stands in for what a submission has, and hands it what tests give to it.
//
// A stand-in is a proxy over an object of ours; every trap asks the solution host and copies the
// answer. Nothing that the host says is run, or names anything but an entry of our own tables.
// There are stand-ins where the author's reference had objects; elsewhere there are only values.
'use strict';

const { AssertionError } = require('node:assert');
const { AsyncResource } = require('node:async_hooks');
const { writeSync } = require('node:fs');
const { types } = require('node:util');
const path = require('node:path');

const { names, replaceable, shared, symbols, things } = require('./builtins.cjs');
const { isFull, isId, longer, must, stepOf } = require('./codec.cjs');
const { Contract } = require('./contract.cjs');
const { Peer } = require('./peer.cjs');
const { NEAR, Questions } = require('./questions.cjs');

const { apply, construct, defineProperty, get, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
const { create, is, setPrototypeOf } = Object;
const { parse, stringify } = JSON;
const { isArray } = Array;
const enqueue = setImmediate; // a microtask is not part of the test to node
const ofFunctions = Function.prototype;
const NOT_STATIC = new Set(['length', 'name', 'prototype', 'arguments', 'caller']);
const WRITABLE = { enumerable: true, writable: true, configurable: true };
const ITERATORS = new Map([
  [Symbol.iterator, things.get('%Iterator%')], [Symbol.asyncIterator, things.get('%AsyncIterator%')],
]);
// What JavaScript itself asks of objects where values are compared, added, shown or awaited.
const ASKED = new Map([[Symbol.toPrimitive, 'toPrimitive'], ...['toString', 'valueOf', 'toJSON', 'then'].map((key) => [key, key])]);
// What is asked of anything, to find out what it is.
const QUIET = new Set(['then', 'toJSON', Symbol.toStringTag, Symbol.isConcatSpreadable, Symbol.for('nodejs.util.inspect.custom')]);
const GENERAL = new Set(['Error', 'Function', 'Object']);
const MOST_TRAILS = 4;

class Judge extends Peer {
  // `loose` names classes and functions that may decide by themselves; `current` gives the test
  // that runs ({path, ended, failure}) of `file`; `lost` is called when the host can say no more,
  // `undecided` with what a test failed of, `needs` with a test and what it needs; `asked` leads to
  // a host that is asked about near misses.
  constructor(link, { root, patience, loose, current, lost, undecided, needs, contract, file = '', asked }) {
    super(link, patience);
    this.loose = new Set(loose.map((name) => name.slice(name.lastIndexOf('.') + 1)));
    this.contract = new Contract(contract, needs);
    this.questions = asked && new Questions(asked, patience, this.contract.seed);
    this.current = current;
    this.lost = lost;
    this.undecided = undecided;
    this.file = file;
    this.infos = new WeakMap(); // target or stand-in: {id, kind, name, trails, ...}
    this.inert = new WeakMap(); // what may only be passed on: what is known of it
    this.idle = true;
    this.room = 16 * 1024; // for what the submission prints
    this.root = root;
    this.plain = new Map(); // classes: the prototype of copies
    this.handles = new Map(); // id: what the host may call, and on behalf of which test
    this.modules = []; // that were loaded
    this.compared = new Set(); // instances that the reference compared in this test
    this.made = new WeakSet(); // errors that tests made
    this.replaced = new Set(); // functions of node's in whose place a test put its own
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

  // The test fails, whatever becomes of this.
  refuse(entry, why, test = this.current()) {
    this.undecided(entry);
    const error = new AssertionError({ message: why, operator: 'boundary' });
    this.blame(error, test);
    return error;
  }

  // The test that runs, as the contract names it.
  place(test) {
    return test?.path === undefined ? this.file : (test.place ??= `${this.file}::${test.path}`);
  }

  // Whether something may be asked of an object: the reference's was asked it, too.
  asks(info, op) {
    const place = this.place(this.current());
    return this.trailsOf(info).map((trail) => this.contract.permits(`op:${op}:${trail}`, place))[0] || this.loose.has(info.name);
  }

  // The trail by which something was come to last; those of the reference, which may have known
  // one object by several, are all written down.
  trailsOf(info, step = '') {
    const trails = info.trails ?? [info.name];
    return (this.contract.learns ? trails : trails.slice(0, 1)).map((trail) => longer(trail, step));
  }

  // What came by a trail in a test had something in it, or nothing.
  weigh(full, { trail, place, test }) {
    if (full === undefined) return;
    if (this.contract.learns) this.contract.permits(`${full ? 'leaves' : 'empty'}:${trail}`, place);
    else if (test) (test.full ??= new Map()).set(trail, full || test.full.get(trail) === true);
  }

  // A test ends: why it failed, if it did.
  ending(test, failure) {
    const place = this.place(test);
    this.compared.clear();
    this.questions?.answered.clear();
    for (const [trail, full] of test.full ?? []) {
      const [some, none] = ['leaves', 'empty'].map((kind) => this.contract.of(`${kind}:${trail}`, place) !== undefined);
      if (!full && some && !none) this.refuse(`leaves:${trail}`, `there was never anything in ${trail}, and in the reference there is`, test);
    }
    const why = failure ?? test.failure;
    if (why === undefined) return why;
    const told = [...(test.inert ?? [])].map(([entry, sentence]) => (this.undecided(entry), sentence)).filter((one) => !why.includes(one));
    return [why, ...told].join('; ');
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

  request(op, body, cx) {
    this.scope = new AsyncResource('SubmissionCall');
    this.mirror();
    const test = this.current();
    return super.request(op, body, { place: this.place(test), test, ...cx });
  }

  conclude({ ok, value }) {
    if (!ok) throw value;
    return value;
  }

  // Arguments are copies: changes of them are seen where the reference's were.
  readAnswer(cx, ok, form, changes) {
    must(typeof ok === 'boolean' && (changes === null || isArray(changes)));
    if (cx.raw && ok) return { ok, value: form };
    const { trail, place } = cx;
    if (trail !== undefined && ok && cx.counts !== false) this.weigh(isFull(form), cx);
    const fill = changes !== null && (this.contract.permits(`changes:${trail}`, place) || this.loose.has(cx.name));
    const value = this.decode(form, { ...cx, trail: ok ? trail : trail && `${trail}!`, same: true, fill });
    if (fill) for (const change of changes) this.decode(change, { ...cx, trail: `${trail}<>`, fill });
    this.thaw(cx.touched);
    return { ok, value };
  }

  // ---- what is given to the host

  writeObject(value, cx) {
    const own = cx.recipe && this.infos.get(value);
    if (own?.recipe === undefined) return super.writeObject(value, cx);
    cx.recipe.isWhole &&= !own.isMade; // since it was made, it may have changed
    return own.recipe;
  }

  foreign(value, cx) {
    const own = this.infos.get(value);
    if (own !== undefined) return ['t', own.id]; // it is made now
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
    this.handles.set(id, { value, test, trail: cx.trail ?? '<>', scope: new AsyncResource('SubmissionCallback') });
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
    const { test, trail } = handle;
    const place = this.place(test);
    const read = (form, step) => {
      const own = longer(trail, step);
      const changes = () => this.contract.permits(`changes:${own}`, place);
      const fill = this.contract.learns || changes();
      return this.decode(form, { trail: own, place, test, fill, filled: this.contract.learns ? changes : undefined });
    };
    const given = forms.map((form, at) => read(form, `(${at})`));
    const on = read(self, 'this');
    if (this.contract.learns) this.contract.permits(`called:${trail}`, place);
    if (test?.ended) throw new Error('the test that gave this function has ended');
    const changes = this.watch(given);
    const run = () => (op === 'new' ? construct(handle.value, given) : apply(handle.value, on, given));
    try {
      answer(true, handle.scope.runInAsyncScope(run), changes);
    } catch (error) {
      this.blame(error, test);
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
      const test = this.current();
      const error = this.decode(body[0], { trail: '!', place: this.place(test), test });
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
    const follow = () => this.post(['n', 'cwd', path.relative(this.root, process.cwd()), process.cwd()]);
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
      this.questions?.post(['n', 'env', this.encode(changed)]);
    }
    const changes = [];
    for (let at = 0; at < replaceable.length; at += 1) {
      const [owner, name, key, plain] = replaceable[at];
      const value = owner[key];
      if (is(value, this.values[at])) continue;
      this.values[at] = value;
      this.replaced[is(value, plain) ? 'delete' : 'add'](plain);
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
    return this.quietly(form, cx);
  }

  // What is part of a description has no trail.
  quietly(form, cx) {
    return this.read(form, { ...cx, trail: undefined });
  }

  readForeign(form, cx) {
    const [tag, id, kind] = form;
    must(isId(id) && id > 0);
    if (tag === 'I' || tag === 'f') return this.readContent(form, cx);
    must(tag === 'R' && !cx.bare, 'a form of an unknown kind');
    return this.arrive(form.length === 2 ? this.theirs.get(id) : this.describe(form, cx), cx);
  }

  describe(form, cx) {
    const [, id, kind] = form;
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
    // With the prototype of a class of node's, it would be that class for instanceof.
    if (isClass) target.prototype = (isArray(prototype) && prototype[0] === 'R' && this.readPrototype(prototype, cx)) || {};
    if (parent !== null) {
      const above = this.quietly(parent, cx);
      must(typeof above === 'function');
      setPrototypeOf(target, above);
    }
    let base = target.prototype ?? null;
    while (base !== null && !names.has(base)) base = getPrototypeOf(base);
    base = base === null ? 'Object' : names.get(base).replace(/\.prototype$/, '');
    const isOwn = isClass && ((flags & 4) === 4 || base !== 'Object');
    return this.standIn(target, { id, kind: 'f', name, base, isOwn, answers: (flags & 2) === 2 });
  }

  standIn(target, info) {
    const made = new Proxy(target, this.traps);
    info.target = target;
    this.infos.set(target, info).set(made, info);
    return this.meet(info.id, made, false);
  }

  // What the host has arrives by a trail: a stand-in if the reference had an object there.
  arrive(thing, cx) {
    const info = this.infos.get(thing);
    must(info !== undefined, 'it speaks of what it never told');
    const { trail, place } = cx;
    if (trail === undefined) return thing;
    const isModule = cx.exports && cx.depth === 1 && info.kind === 'o';
    const trails = [trail, ...((cx.depth === 1 && cx.others) || [])];
    if (!isModule && !trails.map((one) => this.contract.permits(`object:${one}`, place))[0]) return this.inertly(info, cx);
    // A method is the same of every object.
    const before = info.kind === 'f' ? [] : info.trails ?? [];
    info.trails = [...new Set([...trails, ...before])].slice(0, MOST_TRAILS);
    if (cx.depth === 1) info.path ??= cx.path;
    else if (cx.exports && cx.depth === 2) info.path ??= [...cx.path, trail.slice(cx.exports.length + 1)];
    if (info.isOwn && this.contract.learns) this.contract.permits(`class:${trail}`, place, info.base);
    if (info.kind === 'o') {
      info.from = cx.from;
      if (this.contract.of(`op:equal:${trail}`, place) !== undefined) this.compared.add(info);
    }
    return thing;
  }

  // What is a value in the reference, and here is none: what it has of its own is copied, all else
  // that is done with it fails the test.
  inertly(info, cx) {
    const what = info.kind === 'f' ? 'a function' : `an object of ${info.name || 'Object'}`;
    const inert = { id: info.id, trail: cx.trail, entry: `object:${cx.trail}`, why: `${cx.trail} is a value in the reference, and here ${what}` };
    if (cx.test) (cx.test.inert ??= new Map()).set(inert.entry, inert.why);
    if (info.kind !== 'o') return this.passedOn(() => {}, inert);
    const { trail, place, test } = cx;
    return this.decode(this.fieldsOf(info, true), { trail, place, test, inert });
  }

  // Something that may be passed on.
  passedOn(target, inert) {
    const refuse = () => { throw this.refuse(inert.entry, inert.why); };
    const get = (_, key) => {
      const own = typeof target === 'object' && getOwnPropertyDescriptor(target, key);
      if (own) return own.value;
      if (ITERATORS.has(key) && inert.id !== undefined) return this.iterable(inert.id, key, [inert.trail]);
      return QUIET.has(key) ? undefined : refuse();
    };
    const made = new Proxy(target, { get, apply: refuse, construct: refuse });
    this.inert.set(made, target);
    if (inert.id !== undefined) this.theirIds.set(made, { id: inert.id, copied: false });
    return made;
  }

  // An instance that is told as a value.
  readContent([tag, id, classes, kind, items, told, hidden], cx) {
    must(cx.bare !== undefined || cx.inert !== undefined);
    if (tag === 'f') {
      if (cx.inert) return this.passedOn(() => {}, { ...cx.inert, id });
      if (!cx.bare.has(id)) cx.bare.set(id, () => {});
      return cx.bare.get(id);
    }
    must([classes, items, told].every(isArray) && Number.isInteger(hidden) && classes.length < 100 && classes.every((name) => typeof name === 'string') && told.length % 2 === 0);
    const made = kind === 'm' ? new Map() : kind === 's' ? new Set() : kind === 'a' ? [] : kind === 'd' ? new Date(0) : kind === 'x' ? Object(this.read(items[0], { depth: 0 })) : {};
    must(typeof made === 'object');
    if (cx.bare || kind === 'o') setPrototypeOf(made, this.plainOf(classes, getPrototypeOf(made)));
    const given = cx.inert && kind === 'o' ? this.passedOn(made, { ...cx.inert, id, trail: cx.trail }) : made;
    if (cx.inert && kind !== 'o') this.theirIds.set(made, { id, copied: true });
    cx.seen.push(given);
    const inside = items.map((item) => this.inside(item, cx, '[]'));
    if (kind === 'm') for (let at = 0; at + 1 < inside.length; at += 2) made.set(inside[at], inside[at + 1]);
    else if (kind === 's') for (const item of inside) made.add(item);
    else if (kind === 'a') for (const item of inside) made.push(item);
    else if (kind === 'd') made.setTime(Number(inside[0]));
    for (let at = 0; at < told.length; at += 2) {
      must(typeof told[at] === 'string');
      defineProperty(made, told[at], { ...WRITABLE, enumerable: at < hidden, value: this.inside(told[at + 1], cx, stepOf(told[at])) });
    }
    return given;
  }

  // The prototype of copies: below a proxy, V8 takes an array for an object.
  plainOf(classes, base) {
    return classes.reduceRight((above, name) => {
      if (!this.plain.has(above)) this.plain.set(above, new Map());
      const below = this.plain.get(above);
      if (!below.has(name)) below.set(name, create(above, { constructor: { value: { name: this.infos.get(name)?.name ?? name } } }));
      return below.get(name);
    }, base);
  }

  // The content of an instance, told anew; with what its classes compute.
  fieldsOf(info, computed = false) {
    const value = this.conclude(this.request('content', [info.id, computed], { raw: true }));
    must(typeof value === 'string');
    return parse(value);
  }

  // NaN or an infinity arrives.
  odd({ trail, place, test, bare }) {
    if (trail === undefined || bare || this.contract.permits(`nan:${trail}`, place) || !test) return;
    this.refuse(`nan:${trail}`, `${trail} is never NaN or infinite in the reference`, test);
  }

  // A class of node's arrives. Where the reference has one of its own, it may be no more general,
  // and does not catch what was not raised by the submission.
  named(thing, name, { trail, place }) {
    const base = trail === undefined || this.contract.learns ? undefined : this.contract.of(`class:${trail}`, place);
    if (base === undefined || typeof thing !== 'function') return thing;
    const above = things.get(base);
    const is = (one, other) => one === other || apply(Object.prototype.isPrototypeOf, other, [one]);
    if (GENERAL.has(name) || !above || !is(thing, above)) {
      return this.passedOn(() => {}, { entry: `class:${trail}`, why: `${trail} is a class of the reference's own, and here ${name}` });
    }
    if (!is(thing, Error)) return thing;
    const isTheirs = (value) => value instanceof thing && (this.theirIds.has(value) || this.made.has(value));
    return new Proxy(thing, {
      get: (target, key) => (key === Symbol.hasInstance ? isTheirs : get(target, key)),
      construct: (target, given) => {
        const error = construct(target, given);
        this.made.add(error);
        return error;
      },
    });
  }

  // What gives an iterator of something of theirs; undefined if it has none.
  iterable(id, key, trails) {
    if (this.conclude(this.request('has', [id, this.encode(key)])) !== true) return undefined;
    return () => {
      const iterator = this.conclude(this.request('iterate', [id, this.encode(key)]));
      must(isId(iterator) && iterator > 0);
      let any = false;
      const cx = { trail: trails[0], counts: false };
      const told = ([done, value]) => {
        const test = this.current();
        if (!done || !any) this.weigh(!done, { trail: trails[0], place: this.place(test), test });
        any = true;
        return { done, value };
      };
      const step = (how) => (...given) => {
        const body = [how, ...given].map((one) => this.encode(one));
        const value = this.conclude(this.request('step', [iterator, ...body], cx));
        return value instanceof Promise ? value.then(told) : told(value);
      };
      return Object.assign(create(ITERATORS.get(key)), { next: step('next'), return: step('return') });
    };
  }

  ask(op, thing, cx, ...given) {
    const info = this.infos.get(thing);
    return this.conclude(this.request(op, [info.id, ...given.map((one) => this.encode(one))], cx));
  }

  // How what is come to from something is read.
  from(info, step, more = {}) {
    const [trail, ...others] = this.trailsOf(info, step);
    return { trail, others, from: info, name: info.name, ...more };
  }

  call(op, info, given, more) {
    const cx = this.from(info, '()', { touched: this.freeze([...given, ...more]) });
    const written = given.map((one, at) => this.encode(one, { trail: longer(cx.trail, `<${at}>`) }));
    const body = op === 'call' ? [this.encode(more[0]), written] : [written, null];
    return this.request(op, [info.id, ...body], cx);
  }

  // What a file of the judge's asks for that is not here.
  load(from, name, how) {
    const where = [path.relative(this.root, from), name, how];
    this.modules.push(where);
    const file = /^[./]/.test(name) ? path.relative(this.root, path.resolve(path.dirname(from), name)) : name;
    const trail = file.replace(/\.[cm]?[jt]s$/, '');
    return this.conclude(this.request('load', where, { trail, counts: false, exports: trail, path: where }));
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
          if (!info.answers || judge.asks(info, 'hasInstance')) return ofFunctions[Symbol.hasInstance];
          return () => { throw judge.refuse(`op:hasInstance:${judge.trailsOf(info)[0]}`, `${info.name} answers instanceof by itself`); };
        }
        const own = info.derived ? judge.overridden(target, key) : undefined;
        if (own !== undefined) return own.get === undefined ? own.value : apply(own.get, receiver, []);
        if (isLocal(target, key)) {
          const local = get(target, key);
          if (key === 'prototype' && judge.infos.has(local)) judge.infos.get(local).trails ??= judge.trailsOf(info, '.prototype');
          return local;
        }
        if (ITERATORS.has(key) && info.kind === 'o') return judge.iterable(info.id, key, judge.trailsOf(info));
        return judge.look(info, target, key, judge.infos.has(receiver) && judge.infos.get(receiver) !== info ? [receiver] : []);
      },
      set(target, key, value, receiver) {
        const info = judge.infos.get(target);
        const own = info.derived ? judge.overridden(target, key) : undefined;
        if (own?.set !== undefined) apply(own.set, receiver, [value]);
        else if (!judge.isForeign(key)) target[key] = value;
        else return judge.ask('set', target, { touched: judge.freeze([receiver, value]) }, key, value);
        return true;
      },
      has: (target, key) => (isLocal(target, key) ? key in target : judge.ask('has', target, {}, key)),
      deleteProperty: (target, key) => judge.ask('delete', target, { touched: judge.freeze([target]) }, key),
      defineProperty(target, key, found) {
        if (found.configurable === false || !judge.isForeign(key)) defineProperty(target, key, found);
        return judge.ask('define', target, { touched: judge.freeze([target]) }, key, found);
      },
      getOwnPropertyDescriptor(target, key) {
        if (isLocal(target, key) || getOwnPropertyDescriptor(target, key)?.configurable === false) {
          return getOwnPropertyDescriptor(target, key);
        }
        const found = judge.ask('describe', target, judge.from(judge.infos.get(target), stepOf(key), { counts: false }), key);
        if (found === undefined) return undefined;
        const [enumerable, writable, value, getter, setter] = found;
        const kept = getter || setter ? { get: getter, set: setter } : { value, writable };
        return { ...kept, enumerable, configurable: true };
      },
      ownKeys(target) {
        const told = judge.ask('keys', target, {});
        must(isArray(told) && told.every((key) => typeof key === 'string' || typeof key === 'symbol'));
        return [...new Set([...told.filter((key) => !isLocal(target, key)), ...ownKeys(target)])];
      },
      apply(target, self, given) {
        return judge.conclude(judge.call('call', judge.infos.get(target), given, [self]));
      },
      construct(target, given, made) {
        const info = judge.infos.get(target);
        if (judge.infos.get(made) === info) return judge.construct(info, target, given);
        const cx = judge.from(info, '()');
        const forms = given.map((one) => judge.encode(one, { trail: longer(cx.trail, '<>') }));
        const value = judge.conclude(judge.request('new', [info.id, forms, judge.overrides(made.prototype)], cx));
        must(typeof value === 'object' && value !== null);
        const own = judge.infos.get(value);
        if (own === undefined) return setPrototypeOf(value, made.prototype);
        own.derived = true;
        setPrototypeOf(own.target, made.prototype);
        return value;
      },
    };
  }

  look(info, target, key, receiver) {
    const op = info.kind === 'o' ? ASKED.get(key) : undefined;
    const cx = this.from(info, stepOf(key), { path: info.path && typeof key === 'string' && [...info.path, key] });
    if (op !== undefined && op !== 'then' && !this.asks(info, op)) {
      throw this.refuse(`op:${op}:${this.trailsOf(info)[0]}`, `${cx.trail} decides, and does not for the reference`);
    }
    const value = this.ask('get', target, cx, key, ...receiver);
    if (op === 'then' && typeof value === 'function' && !this.asks(info, op)) {
      throw this.refuse(`op:then:${this.trailsOf(info)[0]}`, `${this.trailsOf(info)[0]} is awaited, but is no Promise`);
    }
    if (value !== undefined || op !== undefined) return value;
    const place = this.place(this.current());
    if (this.contract.learns) this.contract.permits(`missing:${cx.trail}`, place);
    const [wanted, missing] = ['object', 'missing'].map((kind) => this.contract.of(`${kind}:${cx.trail}`, place) !== undefined);
    // A name that is not there is never the error that a test waits for.
    return wanted && !missing ? this.passedOn(() => {}, { entry: `missing:${cx.trail}`, why: `there is no ${cx.trail}` }) : value;
  }

  // ---- what is made, and what is compared

  // What a test makes of plain values to compare with it is not made before something else is
  // asked of it: the host is not told what is expected.
  construct(info, target, given) {
    const cx = this.from(info, '()');
    const place = this.place(this.current());
    const [recipe, isWhole] = this.recipeOf(info, given);
    const isCompared = this.contract.of(`op:equal:${cx.trail}`, place) !== undefined;
    if (this.contract.learns || !isWhole || !isCompared || this.contract.of(`raises:${cx.trail}`, place) !== undefined) {
      const answer = this.call('new', info, given, []);
      if (!answer.ok && this.contract.learns) this.contract.permits(`raises:${cx.trail}`, place);
      const value = this.conclude(answer);
      must(typeof value === 'object' && value !== null);
      if (this.infos.has(value)) Object.assign(this.infos.get(value), { recipe, isMade: true });
      return value;
    }
    const empty = create(target.prototype);
    const own = { kind: 'o', name: info.name, target: empty, trails: [cx.trail], recipe, isMade: false };
    const made = new Proxy(empty, this.traps);
    const id = () => {
      this.freeze([]);
      const forms = stringify(recipe).includes('["N",') ? given.map((one) => this.encode(one)) : recipe[2];
      const value = this.conclude(this.request('new', [info.id, forms, null], cx));
      const real = this.infos.get(value);
      if (real === undefined) throw this.refuse(`object:${cx.trail}`, `${cx.trail} is an object in the reference`);
      own.isMade = true;
      defineProperty(own, 'id', { value: real.id });
      this.compared.delete(real);
      this.compared.add(own);
      this.theirs.set(own.id, made);
      this.theirIds.set(made, { id: own.id, copied: false });
      return own.id;
    };
    defineProperty(own, 'id', { get: id, configurable: true });
    this.infos.set(empty, own).set(made, own);
    return made;
  }

  // How another host could make the same, as far as that needs no more than plain values; and
  // whether it would be the same still.
  recipeOf(info, given) {
    if (info.path === undefined || this.replaced.size > 0 || this.questions === undefined) return [];
    const recipe = { isWhole: true };
    const text = `[${given.map((one) => this.sketch(one, { recipe }))}]`;
    return /\["[FJthRPBye]",/.test(text) ? [] : [['N', info.path, parse(text)], recipe.isWhole];
  }

  // What the host is told next must not change what came before: instances are copied. Gives what
  // the call is about, which it may change.
  freeze(things) {
    for (const info of this.compared) if (info.isMade !== false) info.fields ??= this.fieldsOf(info);
    const touched = new Set(things.map((thing) => this.infos.get(thing)).filter((info) => info?.kind === 'o'));
    return [...touched].filter((info) => this.compared.has(info) || info.isMade === false).length > 1 ? undefined : touched;
  }

  thaw(touched) {
    for (const info of touched ? this.compared : []) {
      for (let at = info; at !== undefined; at = at.from) if (touched.has(at) && at.path === undefined) info.fields = undefined;
    }
  }

  // A value in which instances are copies; `found` gets these.
  still(value, copies, found) {
    if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || types.isNativeError(value)) return value;
    if (copies.has(value)) return copies.get(value);
    const info = this.infos.get(value);
    if (info !== undefined) {
      found.add(info);
      if (!this.asks(info, 'equal')) throw this.refuse(`op:equal:${this.trailsOf(info)[0]}`, `${this.trailsOf(info)[0]} is not compared in the reference`);
      let form = info.isMade === false && this.questions.forms(info.recipe, this.modules).real;
      if (form && /\["f",/.test(stringify(form))) void info.id; // functions are the same in one host only
      if (info.isMade !== false) form = info.fields ?? this.fieldsOf(info);
      if (form === null) throw new AssertionError({ message: `${info.name} cannot be made`, operator: 'boundary' });
      const copy = this.bare(form, info.isMade === false ? new Map() : copies.bare);
      copies.set(value, copy);
      const prototype = getPrototypeOf(value);
      return setPrototypeOf(copy, this.infos.has(prototype) ? this.plainOf([prototype], getPrototypeOf(copy)) : prototype);
    }
    const own = this.inert.get(value) ?? value;
    const copy = isArray(own) ? [] : own instanceof Map ? new Map() : own instanceof Set ? new Set() : create(getPrototypeOf(own));
    copies.set(value, copy);
    let differs = own !== value;
    const next = (item) => {
      const stilled = this.still(item, copies, found);
      differs ||= stilled !== item;
      return stilled;
    };
    if (isArray(own)) copy.length = own.length;
    if (copy instanceof Map) apply(Map.prototype.forEach, own, [(item, key) => copy.set(next(key), next(item))]);
    if (copy instanceof Set) apply(Set.prototype.forEach, own, [(item) => copy.add(next(item))]);
    for (const key of ownKeys(own)) {
      const { enumerable, value: item } = getOwnPropertyDescriptor(own, key);
      if (enumerable) defineProperty(copy, key, { ...WRITABLE, value: next(item) });
    }
    if (!differs) copies.set(value, value);
    return differs ? copy : value;
  }

  bare(form, functions) {
    return this.decode(form, { bare: functions });
  }

  // Whether fields tell instances apart: of the near misses of what the test made, no more may be
  // equal to it than were for the reference.
  tellApart(sides, isEqual) {
    const place = this.place(this.current());
    const made = sides.find((side) => [...side].every((info) => info.recipe !== undefined));
    for (const info of made ?? [...sides[0], ...sides[1]]) {
      const { real, near } = info.recipe ? this.questions.forms(info.recipe, this.modules) : { near: [] };
      const functions = new Map();
      const alike = near.filter((form) => form !== null && isEqual(this.bare(real, functions), this.bare(form, functions)));
      const most = near.length === 0 ? NEAR : Math.round((NEAR * alike.length) / near.length);
      const trails = this.trailsOf(info);
      if (this.contract.learns) for (const trail of trails) this.contract.permits(`said:equal:${trail}`, place, most);
      const allowed = Number(this.contract.of(`said:equal:${trails[0]}`, place) ?? 0);
      if (most > allowed + (allowed > 0 ? 1 : 0) && !this.loose.has(info.name)) {
        throw this.refuse(`said:equal:${trails[0]}`, `what ${trails[0]} gives for other arguments is equal to it, too`);
      }
    }
  }

  // A comparison of copies; `negated` if equality makes it fail.
  comparing(original, negated) {
    const judge = this;
    const compare = function (actual, expected, ...others) {
      if (arguments.length < 2) return apply(original, this, arguments);
      const one = new Set();
      const sides = [one, is(actual, expected) ? one : new Set()];
      const bare = new Map();
      const maps = [0, 1].map(() => Object.assign(new Map(), { bare }));
      const still = [actual, expected].map((value, at) => judge.still(value, maps[is(actual, expected) ? 0 : at], sides[at]));
      const told = apply(original, this, [...still, ...others]);
      const isEqual = (...both) => {
        try {
          return apply(original, undefined, both) !== false;
        } catch {
          return false;
        }
      };
      if (!negated && told !== false && sides.every((side) => side.size > 0)) judge.tellApart(sides, isEqual);
      return told;
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

const COMPARISONS = [
  'deepEqual', 'deepStrictEqual', 'notDeepEqual', 'notDeepStrictEqual', 'partialDeepStrictEqual', 'isDeepStrictEqual',
];

module.exports = { Judge };
