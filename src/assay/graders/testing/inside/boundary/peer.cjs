// One side of a conversation in which each may ask the other while it waits for its own answer.
'use strict';

const { Broken, Codec, isId, must } = require('./codec.cjs');

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
    this.followed = new Set();
    this.sent = 0;
    this.taken = 0;
    this.nested = 0;
    link.heard = (text) => (text === undefined ? this.ended(link.lost) : this.take(text));
  }

  post(message) {
    this.sent += 1;
    this.link.send(stringify(message));
  }

  // The answer to a question: {ok, value, changes}. `cx` says how it is read.
  request(op, body, cx = {}) {
    this.asked += 1;
    const number = this.asked;
    this.waiting.set(number, cx);
    this.post(['q', number, op, ...body]);
    for (;;) {
      const answer = this.answers.get(number);
      if (answer !== undefined) {
        this.answers.delete(number);
        return answer;
      }
      const text = this.link.wait(this.patience);
      if (text === undefined) this.ended(this.link.lost ?? `it did not answer within ${this.patience / 1000} s`);
      this.take(text);
    }
  }

  take(text) {
    this.taken += 1;
    let message;
    try {
      message = parse(text);
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

  readAnswer(cx, ok, form, changes) {
    must(typeof ok === 'boolean' && (changes === null || isArray(changes)));
    return { ok, value: this.decode(form, { ...cx, same: true }), changes, cx };
  }

  serve(number, op, ...body) {
    let answered = false;
    const answer = (ok, value, changes = () => null) => {
      if (answered) return;
      answered = true;
      let message;
      try {
        const form = this.encode(value); // before the changes, which may name what it tells of
        message = ['a', number, ok, form, changes()];
        this.post(message);
      } catch (error) {
        this.post(['a', number, false, this.encode(plainError(error)), null]);
      }
    };
    if (this.nested >= MOST_NESTED) {
      answer(false, new RangeError('calls are nested too deeply'));
      return;
    }
    this.nested += 1;
    try {
      this.perform(op, body, answer);
    } catch (error) {
      if (error instanceof Broken) throw error;
      answer(false, error);
    } finally {
      this.nested -= 1;
    }
  }

  note(kind, [id, ok, form, changes]) {
    must(kind === 'settle' && typeof ok === 'boolean');
    const settle = this.pending.get(id);
    must(settle !== undefined, 'a promise that nobody has');
    this.pending.delete(id);
    const answer = this.readAnswer(settle.cx, ok, form, changes);
    try {
      settle.resolve(this.conclude(answer));
    } catch (error) {
      settle.reject(error);
    }
  }

  // How the arguments of a call that are copies have changed since now; null if they have not.
  watch(values) {
    const kept = values.filter((value) => this.theirIds.get(value)?.copied);
    const before = kept.map((value) => this.sketch(value));
    return () => {
      const changes = kept.filter((value, at) => this.sketch(value) !== before[at]);
      return changes.length > 0 ? changes.map((value) => this.encode(value)) : null;
    };
  }

  writePromise(promise, changes = () => null) {
    const known = this.theirIds.get(promise);
    if (known !== undefined) return ['t', known.id];
    const id = this.tell(promise, false);
    if (!this.followed.has(id)) {
      this.followed.add(id);
      const tell = (ok) => (value) => {
        let form;
        try {
          form = this.encode(value);
        } catch (error) {
          form = this.encode(plainError(error));
          ok = false;
        }
        this.post(['n', 'settle', id, ok, form, changes()]);
      };
      apply(then, promise, [tell(true), this.rejecting(tell(false))]);
    }
    return ['P', id];
  }

  rejecting(tell) {
    return tell;
  }

  readPromise([, id], { trail, place, test, touched, counts, name }) {
    must(isId(id) && id > 0);
    if (this.theirs.has(id)) {
      const promise = this.met(id);
      must(promise instanceof PlainPromise);
      return promise;
    }
    let settle;
    const promise = new PlainPromise((resolve, reject) => {
      settle = { resolve, reject, cx: { trail, place, test, touched, counts, name } };
    });
    this.pending.set(id, settle);
    return this.meet(id, promise, false);
  }
}

// An error that surely crosses, for one that does not.
function plainError(error) {
  try {
    return new Error(String(error?.message ?? error).slice(0, 1000));
  } catch {
    return new Error('an error that cannot be shown');
  }
}

module.exports = { Peer };
