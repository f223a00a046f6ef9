// The judge's side: stands in for what a submission has, and hands it what tests give to it.
//
// A stand-in is a proxy over an object of ours; every trap asks the solution host and copies the
// answer. Nothing that the host says is run, or names anything but an entry of our own tables.
// There are stand-ins where the author's reference had objects; elsewhere there are only values.
'use strict';

const { AssertionError } = require('node:assert');
const { AsyncResource } = require('node:async_hooks');
const { readFileSync, writeSync } = require('node:fs');
const path = require('node:path');
const { types } = require('node:util');

const { names, shared, things } = require('./builtins.cjs');
const { Comparisons } = require('./comparisons.cjs');
const { KINDS, isFull, isId, labelled, longer, must, stepOf } = require('./codec.cjs');
const { Contract } = require('./contract.cjs');
const { Held } = require('./held.cjs');
const { Peer } = require('./peer.cjs');
const { Questions } = require('./questions.cjs');
const { ITERATORS, NOT_STATIC, traps } = require('./stands.cjs');
const { Surroundings } = require('./surroundings.cjs');

const { apply, construct, get, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
const { create, is, setPrototypeOf } = Object;
const { isArray } = Array;
const { captureStackTrace } = Error;
const { parse, stringify } = JSON;
const soon = queueMicrotask;
const enqueue = setImmediate; // a microtask is not part of the test to node
// What is asked of anything, to find out what it is.
const QUIET = new Set(['then', 'toJSON', Symbol.toStringTag, Symbol.isConcatSpreadable, Symbol.for('nodejs.util.inspect.custom')]);
// Methods of node's own that take a function which no test looks at, behind something else or at once.
const LISTENING = /^(on|once|off|addListener|removeListener|prepend(Once)?Listener|(add|remove)EventListener|write|end)$/;
const GENERAL = new Set(['Error', 'Function', 'Object']);
const MOST_TRAILS = 4;

// A form without the numbers of what is copied: each call gives it new ones.
function unnumbered(form) {
  if (!isArray(form)) return form;
  const isCopied = form.length === 5 && Object.hasOwn(KINDS, form[0]);
  return (isCopied ? [form[0], ...form.slice(2)] : form).map(unnumbered);
}

const isErrorClass = (value) => value === Error || value.prototype instanceof Error;

class Judge extends Peer {
  // `loose` names classes and functions that may decide by themselves; `current` gives the test
  // that runs ({path, ended, failure}) of `file`; `lost` is called when the host can say no more,
  // `undecided` with what a test failed of, `noted` with what is told of one that passed, `needs` with
  // a test and what it needs; `asked` leads to a host that is asked about near misses.
  constructor(link, { root, patience, loose, current, lost, undecided, noted, needs, contract, file = '', asked }) {
    super(link, patience);
    Object.assign(this, { root, current, lost, undecided, noted });
    this.loose = new Set(loose.map((name) => name.slice(name.lastIndexOf('.') + 1)));
    this.contract = new Contract(contract, file, needs);
    this.infos = new WeakMap(); // target or stand-in: {id, kind, name, trails, ...}
    this.inert = new WeakMap(); // what may only be passed on: what is known of it
    this.idle = true;
    this.room = 16 * 1024; // for what the submission prints
    this.handles = new Map(); // id: what the host may call, and on behalf of which test
    this.alive = new Map(); // id: what stands in for plain data of theirs that may change
    this.origins = new WeakMap(); // copy, while the reference is proven: by which trail it came
    this.fills = false; // whether something of the test's was changed here since the last question
    this.reads = new Map(); // info: properties that were read just now, and where
    this.last = undefined; // the number that was given last, and to which call
    this.known = new Map(); // thing: by which names modules and classes have it
    this.errors = new Map(); // class of node's: what stands for it where the reference has its own
    this.made = new WeakSet(); // errors that tests made
    this.traps = traps(this);
    this.surroundings = new Surroundings(this);
    this.questions = asked && new Questions(asked, patience, this.contract.seed, readFileSync(path.resolve(root, file), 'utf8'));
    this.comparisons = new Comparisons(this);
    this.held = new Held((value) => this.sketch(value));
    this.scrambles = this.contract.learns && this.contract.needs.get('')?.has('scrambles:');
  }

  // Called where an answer is waited for, and at the end of the host: nobody minds it if nothing
  // more was to come.
  ended(why) {
    if (this.nested === 0 && this.idle && this.answers.size === 0) return;
    this.lost(why);
    throw new Error(`the submission's process: ${why}`);
  }

  // ---- what the contract says

  // The test fails, whatever becomes of this.
  refuse(entry, why, test = this.current()) {
    this.undecided(entry);
    const error = new AssertionError({ message: why, operator: 'boundary' });
    this.blame(error, test);
    return error;
  }

  blame(error, test = this.current()) {
    if (error instanceof AssertionError && test) test.failure ??= `${error.message}`;
  }

  // Whether something may be asked of an object: the reference's was asked it, too.
  asks(info, op) {
    const test = this.current();
    return this.trailsOf(info).map((trail) => this.contract.permits(`op:${op}`, trail, test))[0] || this.loose.has(info.name);
  }

  demand(info, op, why) {
    if (!this.asks(info, op)) throw this.refuse(`op:${op}:${this.trailsOf(info)[0]}`, why);
  }

  // The trail by which something was come to last; those of the reference, which may have known
  // one object by several, are all written down.
  trailsOf(info, step = '') {
    const trails = info.trails ?? [info.name];
    return (this.contract.learns ? trails : trails.slice(0, 1)).map((trail) => longer(trail, step));
  }

  // What came by a trail in a test had something in it, or nothing.
  weigh(full, { trail, test, also }) {
    if (full === undefined || !test) return;
    (test.full ??= new Map()).set(trail, full || test.full.get(trail) === true);
    for (const other of also ?? []) (test.alike ??= []).push([other, trail, full]);
  }

  // A test ends: why it failed, if it did.
  ending(test, failure) {
    this.comparisons.end();
    this.held.forget();
    // Of one function that a test took by two names at first nobody knows by which it was called.
    for (const [other, trail, full] of (test.alike ?? []).filter(([name]) => !test.full.has(name))) {
      for (const one of [other, trail]) this.contract.learn(full ? 'leaves' : 'empty', one, test);
    }
    for (const [trail, full] of test.full ?? []) {
      this.contract.learn(full ? 'leaves' : 'empty', trail, test);
      const [some, none] = ['leaves', 'empty'].map((kind) => this.contract.has(kind, trail, test));
      if (!full && some && !none) this.refuse(`leaves:${trail}`, `there was never anything in ${trail}, and in the reference there is`, test);
    }
    const why = failure ?? test.failure;
    if (why === undefined) {
      const place = this.contract.place(test);
      for (const entry of this.contract.needs.get(place)?.keys() ?? []) {
        const [, trail] = /^called:(.*)$/s.exec(entry) ?? []; // with the assertions in it
        if (trail && !test.called?.has(trail)) this.noted(`${place}: ${trail} was not called, as the reference does`);
      }
      return why;
    }
    const told = [...(test.inert ?? [])].map(([entry, sentence]) => (this.undecided(entry), sentence)).filter((one) => !why.includes(one));
    return [why, ...told].join('; ');
  }

  // ---- what is asked of the host

  post(message) {
    this.idle = false;
    super.post(message);
    this.link.hold(); // until the host says that it has nothing more to do
    if (this.turning) return;
    this.turning = true;
    soon(() => this.turn());
  }

  // What the submission does at once, but later, it has done before the test goes on that awaits
  // something: as in one process, whose queue of microtasks both share.
  turn() {
    this.reads.clear();
    super.post(['n', 'turn']);
    for (this.quiet = false; !this.quiet; ) {
      const text = this.link.wait(this.patience);
      if (text === undefined) {
        if (this.link.lost === undefined) this.ended(this.late());
        break;
      }
      this.take(text);
    }
    this.turning = false;
  }

  request(op, body, cx) {
    this.scope = new AsyncResource('SubmissionCall');
    if (op !== 'get') {
      this.reads.clear();
      this.last = undefined;
    }
    this.surroundings.mirror(this.questions);
    this.share();
    const test = this.current();
    const answer = super.request(op, body, { test, ...cx });
    if (this.contract.learns || this.contract.has('shares', '', test)) this.held.look(this.fills);
    this.fills = false;
    return answer;
  }

  // Arguments are copies: changes of them are seen where the reference's were.
  readAnswer(cx, ok, form, changes) {
    const { trail, test } = cx;
    const { learns } = this.contract;
    must(changes === null || (isArray(changes) && changes.every(isArray)));
    const [own, theirs] = [(ref) => ref < 0, (ref) => ref > 0].map((is) => (changes ?? []).filter(([, ref]) => is(ref)));
    const isChanged = own.length > 0 && trail !== undefined && (this.contract.permits('changes', trail, test) || this.loose.has(cx.name));
    if (own.length > 0 && !isChanged && trail !== undefined && this.contract.has('keeps', '', test)) {
      this.refuse(`changes:${trail}`, `${trail} changed its argument, which the test looks at`, test);
    }
    for (const [, ref] of learns ? theirs : []) this.learnAlive(this.theirs.get(ref)?.deref?.());
    this.fills ||= isChanged || theirs.length > 0;
    const followed = [...(isChanged ? own : []), ...(learns ? theirs : [])];
    const answer = super.readAnswer({ ...cx, trail: ok ? trail : trail && `${trail}!`, fill: followed.length > 0 }, ok, form, followed);
    if (trail !== undefined && ok && cx.counts !== false) this.weigh(isFull(form), cx);
    if (ok && cx.asked && typeof answer.value === 'number') this.again(cx, answer.value);
    if (!ok && trail !== undefined && answer.value instanceof Error) this.expectError(answer.value, `${trail}!`, test);
    this.comparisons.thaw(cx.touched);
    return answer;
  }

  // Plain data of theirs that changes where it is handed back is an object of theirs.
  learnAlive(copy) {
    const { trail, test } = this.origins.get(copy) ?? {};
    for (const kind of trail === undefined ? [] : ['object', 'op:equal', 'op:toJSON']) this.contract.learn(kind, trail, test);
  }

  ask(op, info, cx, ...given) {
    return this.conclude(this.request(op, [this.idOf(info), ...given.map((one) => this.encode(one))], cx));
  }

  // From where something is asked: what `place` makes of it takes long, and is seldom wanted.
  whence() {
    const here = {};
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 30;
    captureStackTrace(here);
    Error.stackTraceLimit = stackTraceLimit;
    return here;
  }

  // Where in the tests that is.
  place(here) {
    return `${here.stack}`.split('\n').find((line) => line.includes(`${this.root}/`) && !line.includes('node_modules'));
  }

  // What is asked for again while nothing else happens is what it was, but where the reference's was not, and for
  // a loop, which waits for another at one place.
  isStill(before, now, { trail, test }) {
    if (before === undefined || is(before.value, now.value)) return true;
    const place = this.place(now.here);
    return (place !== undefined && place === this.place(before.here)) || this.contract.permits('moves', trail, test);
  }

  property(info, cx, key) {
    if (!this.reads.has(info)) this.reads.set(info, new Map());
    const known = this.reads.get(info);
    const test = this.current();
    const here = this.whence();
    const value = this.ask('get', info, cx, key);
    if (!this.isStill(known.get(key), { value, here }, { ...cx, test })) {
      throw this.refuse(`moves:${cx.trail}`, `${cx.trail} is another when it is read again`, test);
    }
    if (['object', 'function'].includes(typeof value)) known.delete(key);
    else this.reads.get(info)?.set(key, { value, here });
    return value;
  }

  // The same of a number that a call gives, or what it gives to wait for.
  again(cx, value) {
    const { trail, test, asked: { key, here, before } } = cx;
    this.last = { key, value, here };
    if (before?.key === key && !this.isStill(before, this.last, cx)) {
      this.refuse(`moves:${trail}`, `${trail} is another when it is asked again`, test);
    }
  }

  // What has two names in the reference, such as two symbols, is two here: a test that compares with either of
  // them would not tell them apart. By its second name it is nothing that anything is equal to.
  // Of errors of node's own this is asked where they are raised: see `expectError`.
  named(value, name) {
    const info = typeof value === 'symbol' ? undefined : this.infos.get(value);
    const isNodes = typeof value === 'function' && info === undefined && !this.inert.has(value) && isErrorClass(value);
    const isError = isNodes || (info?.kind === 'f' && info.target.prototype instanceof Error);
    if (typeof value !== 'symbol' && !isError && info?.kind !== 'o') return value;
    const thing = isNodes ? value.prototype.constructor : value;
    if (!this.known.has(thing)) this.known.set(thing, new Set());
    for (const other of this.known.get(thing)) {
      const both = [name, other].sort().join('=');
      if (other === name || this.contract.permits('one', both) || isNodes) continue;
      const [entry, why] = [`one:${both}`, `${name} and ${other} are one thing here`];
      const test = this.current();
      if (test) (test.inert ??= new Map()).set(entry, why);
      return typeof value === 'symbol' ? Symbol(name) : this.passedOn(isError ? () => {} : {}, { entry, why });
    }
    this.known.get(thing).add(name);
    return value;
  }

  // An error is no other one of the reference's than that which a test waits for: what is raised in place of all
  // those that it is derived from could be whichever that is, and so could what several names mean.
  expectError(error, trail, test) {
    const { needs } = this.contract;
    const chain = [];
    for (let at = getPrototypeOf(error); at !== null; at = getPrototypeOf(at)) {
      const [, own = []] = [...this.known].find(([thing]) => typeof thing === 'function' && thing.prototype === at) ?? [];
      if (!names.has(at)) chain.push([...own].sort());
      else if (chain.length === 0) chain.push([...own].sort(), [at.constructor.name]);
    }
    const known = chain.filter((some) => some.length > 0);
    if (known.length > 0) this.contract.learn('raised', `${trail}:${known.map(([name]) => name).join('<')}`, test);
    if (this.contract.learns) return;
    const raised = (places, begin) => {
      const entries = places.flatMap((place) => [...(needs.get(place)?.keys() ?? [])]).filter((entry) => entry.startsWith(begin));
      return new Map(entries.map((entry) => entry.slice(entry.lastIndexOf(':') + 1).split('<')).map((chain) => [chain[0], chain]));
    };
    const here = raised([this.contract.place(test)], `raised:${trail}:`);
    const theirs = raised([...needs.keys()], `raised:${trail}:`);
    const [first, ...others] = known.map((some) => some.filter((name) => theirs.has(name))).filter((some) => some.length > 0);
    const isAkin = (one, other) =>
      one === other || theirs.get(one).includes(other) || theirs.get(other).includes(one) ||
      this.contract.has('one', [one, other].sort().join('='));
    const isOne = first?.every((one) => first.every((other) => isAkin(one, other)));
    for (const other of isOne ? others : [first ?? []]) {
      const isKind = isOne && first.some((one) => other.some((name) => isAkin(one, name)));
      if (isKind || !other.some((name) => here.has(name))) continue;
      this.refuse(`raised:${trail}:${first[0]}`, `${trail} is ${first[0]} here, and ${other.at(-1)} in the reference`, test);
    }
  }

  // How what is come to from something is read.
  from(info, step, more = {}) {
    const [trail, ...others] = this.trailsOf(info, step);
    const also = this.contract.learns ? (info.exported ?? []).map((one) => longer(one, step)).filter((one) => one !== trail) : [];
    return { trail, others, also, from: info, name: info.name, ...more };
  }

  // `first` is what a function is called on, or the functions with which a class is extended.
  call(op, info, given, first) {
    const cx = this.from(info, '()', { touched: this.comparisons.freeze([...given, first]) });
    const forms = given.map((one, at) => this.encode(one, { trail: longer(cx.trail, `<${at}>`) }));
    const body = [info.id, this.encode(first), ...forms];
    cx.asked = { key: stringify(body.map(unnumbered)), here: this.whence(), before: this.last };
    const answer = this.request(op, body, cx);
    if (this.scrambles) this.held.scramble();
    return answer;
  }

  tell(thing, copied) {
    if (copied && this.scrambles && this.current() !== undefined) this.held.given.add(thing);
    if (copied && !this.ids.has(thing)) this.held.note(thing);
    return super.tell(thing, copied);
  }

  // What a test changes of what both have is changed at the other end, where one of the reference's tests did so.
  share() {
    const test = this.current();
    if (this.scrambles || test === undefined || !(this.contract.learns || this.contract.has('shares', '', test))) return;
    const changed = this.held.changed();
    if (changed.length === 0) return;
    this.contract.learn('shares', '', test);
    this.post(['n', 'follow', ...changed.map((value) => this.encode(value))]);
  }

  // What a file of the judge's asks for that is not here.
  load(from, name, how) {
    const where = [path.relative(this.root, from), name, how];
    this.questions?.modules.push(where);
    const file = /^[./]/.test(name) ? path.relative(this.root, path.resolve(path.dirname(from), name)) : name;
    const trail = file.replace(/\.[cm]?[jt]s$/, '');
    return this.conclude(this.request('load', where, { trail, counts: false, isModule: true, path: where }));
  }

  // ---- what is given to the host

  // What the test made of plain values is made now, if it was not yet.
  idOf(info) {
    return info.id ?? info.make();
  }

  writeObject(value, cx) {
    const own = cx.recipe && this.infos.get(value);
    if (own?.recipe === undefined) return super.writeObject(value, cx);
    cx.recipe.isWhole &&= own.id === undefined; // since it was made, it may have changed
    return own.recipe;
  }

  foreign(value, cx) {
    const own = this.infos.get(value);
    if (own !== undefined) return ['t', this.idOf(own)];
    if (types.isNumberObject(this.inert.get(value))) return this.write(this.inert.get(value).valueOf(), cx);
    if (typeof value === 'function') return this.writeHandle(value, cx);
    if (/^(Test|Suite)Context$/.test(getPrototypeOf(value)?.constructor?.name)) {
      throw new TypeError('the context of a test cannot be given to the submission');
    }
    let base = value;
    while (base !== null && !names.has(base)) base = getPrototypeOf(base);
    const id = this.introduce(value, () => ['J', base && names.get(base)], () => this.membersOf(value, cx));
    cx.seen.set(value, cx.seen.size);
    return ['J', id, this.pairs(value, cx, () => true)];
  }

  // What an object of the test has besides data: what it computes, and the methods of its classes.
  membersOf(value, { trail }) {
    const known = new Set(['constructor']);
    const [computed, methods] = [[], []];
    for (let at = value; at !== null && at !== Object.prototype; at = getPrototypeOf(at)) {
      for (const key of ownKeys(at)) {
        const found = getOwnPropertyDescriptor(at, key);
        const isTold = typeof key === 'symbol' ? names.has(key) : !names.has(at) || !key.startsWith('_');
        const isMethod = at !== value && typeof found.value === 'function';
        if (known.has(key) || !isTold || !(found.get || isMethod)) continue;
        known.add(key);
        const own = found.get ? () => get(value, key) : (...given) => apply(found.value, value, given);
        const takes = names.has(at) && LISTENING.test(key.description ?? key) ? Number(key !== 'end') : undefined;
        (found.get ? computed : methods).push(['-', this.encode(key)], this.encode(own, { trail, takes }));
      }
    }
    return [computed, methods];
  }

  // `takes` says from which place on it takes functions that node calls, and not the test.
  writeHandle(value, { trail = '<>', takes }) {
    const base = names.get(value.prototype);
    const statics = () => [[], this.pairs(value, { seen: new Map(), depth: 0, trail }, (key) => !NOT_STATIC.has(key), true)];
    const id = this.introduce(value, () => ['F', shared.has(base) ? base : null, `${value.name}`, value.length], statics);
    this.handles.set(id, { value, test: this.current(), trail, takes, scope: new AsyncResource('SubmissionCallback') });
    return ['R', id];
  }

  prototypeOf(prototype) {
    let at = prototype;
    while (at !== null && this.nameOf(at) === undefined) at = getPrototypeOf(at);
    return at && this.nameOf(at);
  }

  // ---- what the host asks and tells

  perform(op, [id, ...forms], answer) {
    must(op === 'call' || op === 'new', 'there is no such request');
    const handle = this.handles.get(id);
    must(handle !== undefined, 'it calls what it was not given');
    const { value, test, trail, takes, scope } = handle;
    const { contract } = this;
    const [self, ...given] = forms.map((form, at) => {
      if (at - 1 >= takes && isArray(form) && form[0] === 'R' && this.infos.get(this.met(form[1]))?.kind === 'f') return this.decode(form);
      const own = longer(trail, at === 0 ? 'this' : `(${at - 1})`);
      const changes = () => contract.permits('changes', own, test);
      return this.decode(form, { trail: own, test, fill: contract.learns || changes(), filled: contract.learns ? changes : undefined });
    });
    this.reads.clear();
    this.fills = true; // what came may have been filled
    contract.learn('called', trail, test);
    if (test) (test.called ??= new Set()).add(trail);
    if (test?.ended) throw new Error('the test that gave this function has ended');
    const changes = this.watch(given);
    const run = () => (op === 'new' ? construct(value, given) : apply(value, self, given));
    try {
      answer(true, scope.runInAsyncScope(run), changes);
    } catch (error) {
      this.blame(error, test);
      throw error;
    }
  }

  note(kind, body) {
    if (kind === 'quiet') this.quiet = true;
    else if (kind === 'idle') {
      this.idle = body[0] === this.sent;
      if (this.idle) this.link.release();
    } else if (kind === 'printed') {
      const [name, text] = body;
      const shown = `${text}`.slice(0, this.room);
      this.room -= shown.length;
      writeSync(name === 'stderr' ? 2 : 1, shown);
    } else if (kind === 'uncaught') {
      const error = this.decode(body[0], { trail: '!', test: this.current() });
      this.scope.runInAsyncScope(() => enqueue(() => { throw error; }));
    } else super.note(kind, body);
  }

  // ---- what stands in for the submission's

  // A stand-in for what the host tells of: an object, a prototype or a function.
  described(kind, prototype, name = '', length = 0, parent = null, isClass = false, base = null, answers = false) {
    must(/^[ofps]$/.test(kind) && typeof name === 'string' && Number.isFinite(length));
    if (kind === 's') return Symbol(name);
    const above = this.readPrototype(prototype);
    if (kind !== 'f') return this.standIn(create(above), { kind, name: name || (this.infos.get(above)?.name ?? '') });
    const target = labelled(isClass ? function () {} : () => {}, name, length);
    // With the prototype of a class of node's, it would be that class for instanceof.
    if (isClass) target.prototype = this.infos.has(above) ? above : {};
    const its = this.decode(parent) ?? Function.prototype;
    must(typeof its === 'function');
    setPrototypeOf(target, its);
    return this.standIn(target, { kind, name, base, answers });
  }

  standIn(target, info) {
    const made = new Proxy(target, this.traps);
    info.target = target;
    this.infos.set(target, info).set(made, info);
    return made;
  }

  meet(id, thing, copied, cx) {
    const info = this.infos.get(thing);
    if (info !== undefined) info.id = id;
    if (copied) this.held.note(thing);
    if (copied && cx?.trail && this.contract.learns) this.origins.set(thing, { trail: cx.trail, test: cx.test });
    return super.meet(id, thing, copied);
  }

  // Where the reference has an object, one that is all data stays where it is, too: it may change there.
  readCopied(form, cx) {
    const [tag, id] = form;
    const isAlive = (tag === 'Object' || tag === 'Bare') && id > 0 && !cx.bare && !cx.inert && !this.contract.learns;
    if (!isAlive || cx.trail === undefined || !this.contract.has('object', cx.trail, cx.test)) return super.readCopied(form, cx);
    const at = cx.seen.length;
    const copy = super.readCopied(form, Object.assign(cx, { trail: undefined, kept: cx.trail }));
    cx.trail = cx.kept;
    if (!this.alive.has(id)) {
      this.post(['n', 'hold', id]);
      this.alive.set(id, this.standIn(create(getPrototypeOf(copy)), { kind: 'o', name: 'Object', id }));
    }
    const thing = this.alive.get(id);
    cx.seen[at] = thing;
    this.theirIds.set(thing, { id, copied: false });
    return this.arrive(thing, cx);
  }

  readForeign([tag, id], cx) {
    must(tag === 'f' && isId(id) && id > 0 && (cx.bare || cx.inert));
    if (cx.inert) return this.passedOn(() => {}, { ...cx.inert, id });
    if (!cx.bare.has(id)) cx.bare.set(id, () => {});
    return cx.bare.get(id);
  }

  // What arrives by a trail: a stand-in if the reference had an object there.
  arrive(thing, cx, name) {
    const { trail, test } = cx;
    const info = this.infos.get(thing);
    must(info !== undefined || name !== undefined || ['number', 'symbol'].includes(typeof thing));
    if (typeof thing === 'symbol' && trail && !trail.includes('(')) return this.named(thing, trail);
    if (trail === undefined || typeof thing === 'symbol') return thing;
    if (typeof thing === 'number') return this.number(thing, cx);
    if (info === undefined) return this.builtin(thing, name, cx);
    const isModule = cx.isModule && cx.depth === 1 && info.kind === 'o';
    const trails = [trail, ...((cx.depth === 1 && cx.others) || [])];
    if (!isModule && !trails.map((one) => this.contract.permits('object', one, test))[0]) return this.inertly(info, cx);
    // A method is the same of every object.
    const before = info.kind === 'f' ? [] : info.trails ?? [];
    info.trails = [...new Set([...trails, ...before])].slice(0, MOST_TRAILS);
    if (cx.depth === 1) info.path ??= cx.path;
    if (cx.from?.path !== undefined) info.exported = [...new Set([...(info.exported ?? []), trail])].slice(0, MOST_TRAILS);
    if (info.base) this.contract.learn('class', trail, test, info.base);
    if (info.kind === 'o') {
      info.from = cx.from;
      if (this.contract.has('op:equal', trail, test)) this.comparisons.live.add(info);
    }
    return thing;
  }

  // NaN or an infinity.
  number(value, { trail, test }) {
    if (this.contract.permits('nan', trail, test)) return value;
    const [entry, why] = [`nan:${trail}`, `${trail} is never NaN or infinite in the reference`];
    if (test === undefined) return this.passedOn(Object(value), { entry, why }); // nobody knows yet which tests use it
    this.refuse(entry, why, test);
    return value;
  }

  // A class of node's arrives. Where the reference has one of its own, it may be no more general,
  // and does not catch what was not raised by the submission.
  builtin(thing, name, { trail, test }) {
    const base = this.contract.learns ? undefined : this.contract.of('class', trail, test);
    if (base === undefined || typeof thing !== 'function') return thing;
    const above = things.get(base);
    const is = (one, other) => one === other || apply(Object.prototype.isPrototypeOf, other, [one]);
    if (GENERAL.has(name) || !above || !is(thing, above)) {
      return this.passedOn(() => {}, { entry: `class:${trail}`, why: `${trail} is a class of the reference's own, and here ${name}` });
    }
    if (!is(thing, Error)) return thing;
    const isTheirs = (value) => value instanceof thing && (this.theirIds.has(value) || this.made.has(value));
    const made = this.errors.get(thing) ?? new Proxy(thing, {
      get: (target, key) => (key === Symbol.hasInstance ? isTheirs : get(target, key)),
      construct: (target, given) => {
        const error = construct(target, given);
        this.made.add(error);
        return error;
      },
    });
    this.errors.set(thing, made);
    return made;
  }

  // What is a value in the reference, and here is none: what it has of its own is copied, all else
  // that is done with it fails the test.
  inertly(info, { trail, test }) {
    const what = info.kind === 'f' ? 'a function' : `an object of ${info.name || 'Object'}`;
    const inert = { id: info.id, trail, entry: `object:${trail}`, why: `${trail} is a value in the reference, and here ${what}` };
    if (test) (test.inert ??= new Map()).set(inert.entry, inert.why);
    // The same thing again, unchanged, is the same here.
    const text = info.kind === 'o' ? this.ask('content', info, {}, true) : '';
    if (info.inert?.text === text) return info.inert.made;
    const made = info.kind === 'o' ? this.decode(parse(text), { trail, test, inert }) : this.passedOn(() => {}, inert);
    info.inert = { text, made };
    return made;
  }

  // Something that may be passed on.
  passedOn(target, inert) {
    const refuse = () => { throw this.refuse(inert.entry, inert.why); };
    const get = (_, key) => {
      const own = typeof target === 'object' && getOwnPropertyDescriptor(target, key);
      if (own) return own.value;
      if (QUIET.has(key)) return undefined;
      if (inert.id === undefined) return refuse();
      if (ITERATORS.has(key)) return this.iterable(inert.id, key, inert.trail);
      if (this.ask('has', inert, {}, key) === false) return undefined;
      // Data that a class holds is its own as that of an object is.
      const [isData] = (typeof target === 'function' && this.ask('getOwnPropertyDescriptor', inert, {}, key)) || [];
      return isData ? this.ask('get', inert, { trail: longer(inert.trail, stepOf(key)), test: this.current() }, key) : refuse();
    };
    const made = new Proxy(target, { get, apply: refuse, construct: refuse });
    this.inert.set(made, target);
    if (inert.id !== undefined) this.theirIds.set(made, { id: inert.id, copied: false });
    return made;
  }

  // The content of an instance, told anew.
  fieldsOf(info) {
    return parse(this.ask('content', info, {}, false));
  }

  // An instance that is told as a value.
  instance(made, tag, id, classes, cx) {
    must((cx.bare || cx.inert) && isArray(classes) && classes.length < 100 && classes.every((name) => typeof name === 'string'));
    if (cx.bare || tag === 'Object') setPrototypeOf(made, this.comparisons.plainOf(classes, getPrototypeOf(made)));
    return cx.inert && tag === 'Object' ? this.passedOn(made, { ...cx.inert, id, trail: cx.trail }) : made;
  }

  // What gives an iterator of something of theirs; undefined if it has none.
  iterable(id, key, trail) {
    if (this.ask('has', { id }, {}, key) !== true) return undefined;
    return () => {
      const iterator = { id: this.ask('iterate', { id }, {}, key) };
      must(isId(iterator.id) && iterator.id > 0);
      const told = ([done, value]) => {
        this.weigh(!done, { trail, test: this.current() });
        return { done, value };
      };
      const step = (how) => (...given) => {
        const value = this.ask('step', iterator, { trail, counts: false }, how, ...given);
        return value instanceof Promise ? value.then(told) : told(value);
      };
      return Object.assign(create(ITERATORS.get(key)), { next: step('next'), return: step('return') });
    };
  }
}

module.exports = { Judge };
