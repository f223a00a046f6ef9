// What shows only where both sides have one object: copies cross, which hides who has which.
// It matters to a test that looks again at what it gave away, or changes what it has in its hands. Which do so
// is learnt while the reference is proven: all that a test gave away is changed once after each call, to see
// which tests then fail; and what a test changes itself is seen.
'use strict';

const { types } = require('node:util');

const { getPrototypeOf } = Reflect;
const { isFrozen } = Object;
const { isArray } = Array;
const LONGEST = 10_000;
const MOST = 30; // that are watched, the newest ones

// Turned round as by a sort in its place, which a test that sorts itself does not see.
function turn(list) {
  const before = [...list];
  list.reverse();
  if (!before.every((one, at) => Object.is(one, list[at]))) return () => list.reverse();
  if (!isArray(list) || list.length === 0) return () => {};
  list.push(list[0]);
  return () => list.pop();
}

// Changes a container as a submission could that has the same one; gives what puts it back, or undefined.
function change(value) {
  if (isFrozen(value)) return undefined;
  if (isArray(value) || types.isTypedArray(value)) return value.length > LONGEST ? undefined : turn(value);
  if (types.isDate(value)) {
    const time = value.getTime();
    value.setTime(time + 1e9);
    return () => value.setTime(time);
  }
  if (types.isMap(value)) return value.set('', 0), () => value.delete('');
  if (types.isSet(value)) return value.add(''), () => value.delete('');
  if (![Object.prototype, null].includes(getPrototypeOf(value)) || Object.hasOwn(value, '') || !Object.isExtensible(value)) return undefined;
  value[''] = 0;
  return () => delete value[''];
}

class Held {
  // `sketch` gives a text of what a container holds.
  constructor(sketch) {
    this.sketch = sketch;
    this.known = new Map();
    this.given = new Set();
    this.undo = [];
  }

  // A container crosses that did not before.
  note(value) {
    if (!isArray(value) && ![Map.prototype, Set.prototype, Object.prototype].includes(getPrototypeOf(value))) return;
    if ((value.length ?? value.size ?? 0) > LONGEST) return;
    this.known.set(value, undefined);
    if (this.known.size > MOST) this.known.delete(this.known.keys().next().value);
  }

  // Before the host is asked: what the test itself has changed.
  changed() {
    const found = [];
    for (const [value, before] of this.known) {
      const now = this.sketch(value);
      this.known.set(value, now);
      if (before !== undefined && now !== before) found.push(value);
    }
    return found;
  }

  // After that: what is new; `all`, where what is known was changed here.
  look(all) {
    for (const [value, before] of this.known) if (all || before === undefined) this.known.set(value, this.sketch(value));
  }

  // The host has done something, and could have changed everything.
  scramble() {
    for (const value of this.given) this.undo.push(change(value));
    this.given.clear(); // once each
  }

  // A test ends: what is the file's is again what it was.
  forget() {
    for (const undo of this.undo.reverse()) undo?.();
    this.undo = [];
    this.given.clear();
    this.known.clear();
  }
}

module.exports = { Held };
