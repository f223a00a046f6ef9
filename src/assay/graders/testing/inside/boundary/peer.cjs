// One side of a conversation in which each may ask the other while it waits for its own answer.
'use strict';

const { Broken, Codec, isId, longer, must } = require('./codec.cjs');

const { apply } = Reflect;
const { isArray } = Array;
const { parse, stringify } = JSON;
const { then } = Promise.prototype;
const PlainPromise = Promise;
const MOST_NESTED = 200;

class Peer extends Codec {
  constructor(link, patience) {
    super();
    this.link = link;
    this.patience = patience; // milliseconds that an answer may take
    this.asked = 0;
    this.waiting = new Map(); // number of a question: how to read its answer
    this.answers = new Map();
    this.pending = new Map(); // id of a promise of theirs: how to settle ours, and how to read it
    this.told = new Set(); // ids that the other end has had a description of
    this.sent = 0;
    this.taken = 0;
    this.nested = 0;
    link.heard = (text) => (text === undefined ? this.ended(link.lost) : this.take(text));
  }

  post(message) {
    this.sent += 1;
    this.link.send(stringify(message));
  }

  // The answer to a question: {ok, value}. `cx` says how it is read.
  request(op, body, cx = {}) {
    const number = (this.asked += 1);
    this.waiting.set(number, cx);
    this.post(['q', number, op, ...body]);
    while (!this.answers.has(number)) {
      const text = this.link.wait(this.patience);
      if (text === undefined) this.ended(this.link.lost ?? this.late());
      this.take(text);
    }
    const answer = this.answers.get(number);
    this.answers.delete(number);
    return answer;
  }

  late() {
    return `it did not answer within ${this.patience / 1000} s`;
  }

  conclude({ ok, value }) {
    if (!ok) throw value;
    return value;
  }

  take(text) {
    this.taken += 1;
    try {
      const message = parse(text);
      must(isArray(message));
      const [kind, first, ...others] = message;
      if (kind === 'q') this.serve(first, ...others);
      else if (kind === 'n') this.note(first, others);
      else {
        const cx = this.waiting.get(first);
        must(kind === 'a' && cx !== undefined, 'nobody asked');
        this.waiting.delete(first);
        this.answers.set(first, this.readAnswer(cx, ...others));
      }
    } catch (error) {
      if (!(error instanceof Broken) && !(error instanceof SyntaxError)) throw error;
      this.ended(`what it said makes no sense: ${error.message}`);
    }
  }

  // What a call came to, and what became of its arguments.
  readAnswer(cx, ok, form, changes) {
    must(typeof ok === 'boolean' && (changes === null || isArray(changes)));
    const value = this.decode(form, { ...cx, same: true });
    for (const change of changes ?? []) this.decode(change, { ...cx, trail: cx.trail && longer(cx.trail, '<>'), follows: true });
    return { ok, value };
  }

  // An outcome as it crosses; an error that does not, as one that does.
  outcome(ok, value, changes = () => null) {
    try {
      return [ok, this.encode(value), changes()];
    } catch (error) {
      return [false, this.encode(new Error(`${error?.message ?? error}`.slice(0, 1000))), null];
    }
  }

  serve(number, op, ...body) {
    const answer = (...outcome) => this.post(['a', number, ...this.outcome(...outcome)]);
    this.nested += 1;
    try {
      if (this.nested > MOST_NESTED) throw new RangeError('calls are nested too deeply');
      this.perform(op, body, answer);
    } catch (error) {
      if (error instanceof Broken) throw error;
      answer(false, error);
    } finally {
      this.nested -= 1;
    }
  }

  note(kind, [id, ...others]) {
    if (kind === 'meet') {
      must(!this.theirs.has(id) || this.theirs.get(id) instanceof WeakRef, 'one thing is told twice');
      this.meet(id, this.described(...others));
    } else {
      const settle = this.pending.get(id);
      must(kind === 'settle' && settle !== undefined, 'a promise that nobody has');
      this.pending.delete(id);
      const { ok, value } = this.readAnswer(settle.cx, ...others);
      settle[ok ? 'resolve' : 'reject'](value);
    }
  }

  // The id of what is not copied: when it is first named, the other end is told what it is, and then, as
  // that may name it again, what is at it.
  introduce(thing, describe, more) {
    const id = this.tell(thing);
    if (this.told.has(id)) return id;
    const description = describe();
    this.told.add(id);
    this.post(['n', 'meet', id, ...description]);
    if (more !== undefined) this.post(['n', 'more', id, ...more()]);
    return id;
  }

  // How those of some values that the other end has, too, as copies have changed since now; null if they have not.
  watch(values) {
    const isCopied = (value) => this.theirIds.get(value)?.copied || this.own.get(this.ids.get(value)) instanceof WeakRef;
    const kept = values.filter(isCopied);
    const before = kept.map((value) => this.sketch(value));
    return () => {
      const changes = kept.filter((value, at) => this.sketch(value) !== before[at]);
      return changes.length > 0 ? changes.map((value) => this.encode(value)) : null;
    };
  }

  writePromise(promise, changes) {
    const id = this.tell(promise);
    if (!this.told.has(id)) {
      this.told.add(id);
      const test = this.current?.();
      const tell = (ok) => (value) => {
        if (!ok) this.blame?.(value, test);
        this.post(['n', 'settle', id, ...this.outcome(ok, value, changes)]);
      };
      apply(then, promise, [tell(true), tell(false)]);
    }
    return ['P', id];
  }

  readPromise([, id], cx) {
    must(isId(id) && id > 0);
    const known = this.theirs.get(id);
    must(known === undefined || known instanceof PlainPromise);
    if (known !== undefined) return known;
    return this.meet(id, new PlainPromise((resolve, reject) => {
      this.pending.set(id, { resolve, reject, cx: { ...cx, path: undefined, isModule: false } });
    }));
  }
}

module.exports = { Peer };
