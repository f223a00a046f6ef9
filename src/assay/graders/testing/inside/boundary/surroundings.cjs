// What tests change around them, and the submission sees: variables of the environment, the working
// directory, functions of node's and globals in whose place they put their own.
'use strict';

const path = require('node:path');

const { replaceable } = require('./builtins.cjs');

const { apply, defineProperty, deleteProperty, ownKeys, set } = Reflect;
const { is } = Object;

const TIMERS = /^(set(Timeout|Interval|Immediate)|queueMicrotask|nextTick)$/;

class Surroundings {
  constructor(judge) {
    this.judge = judge;
    this.variables = new Set(); // that a test has changed
    this.replaced = new Set(); // what of node's is another for now
    this.follow();
    this.remember();
  }

  // Whatever is changed from now on, a test changes.
  remember() {
    this.watched = replaceable.map((one) => ({ ...one, value: one.owner[one.key], first: one.owner[one.key] }));
    this.globals = new Set(ownKeys(globalThis));
  }

  // The environment and the directory are watched rather than read before each call.
  follow() {
    const { judge, variables } = this;
    const { env, chdir } = process;
    const noting = (change) => (target, key, ...given) => (variables.add(key), change(target, key, ...given.slice(0, 1)));
    process.env = new Proxy(env, {
      set: noting(set), deleteProperty: noting(deleteProperty), defineProperty: noting(defineProperty),
    });
    const tell = () => judge.post(['n', 'cwd', path.relative(judge.root, process.cwd()), process.cwd()]);
    process.chdir = (place) => {
      apply(chdir, process, [place]);
      tell();
    };
    if (process.cwd() !== judge.root) tell();
  }

  // Tells what has changed, the environment also the host that is asked about near misses.
  mirror(asked) {
    const { judge, variables } = this;
    const changes = [...variables].map((key) => ['process.env', key, judge.encode(process.env[key])]);
    variables.clear();
    if (changes.length > 0) asked?.post(['n', 'patch', ...changes]);
    for (const key of ownKeys(globalThis)) {
      if (this.globals.has(key) || typeof key !== 'string') continue;
      this.globals.add(key);
      this.watched.push({ owner: globalThis, name: 'globalThis', key });
    }
    for (const one of this.watched) {
      const value = one.owner[one.key];
      if (is(value, one.value)) continue;
      one.value = value;
      const isRestored = is(value, one.first);
      this.replaced[isRestored ? 'delete' : 'add'](one);
      try {
        const takes = TIMERS.test(one.key) ? 0 : undefined;
        changes.push([one.name, one.key, ...(isRestored ? [] : [judge.encode(value, { takes })])]);
      } catch {
        // What cannot cross is not seen at the other side.
      }
    }
    if (changes.length > 0) judge.post(['n', 'patch', ...changes]);
  }
}

module.exports = { Surroundings };
