// Closes the ways by which code of the submission could reach into the test runner it shares a
// process with: replacing assert or node:test, and reading closures through V8's own tools.
//
// Runs before anything else, and again in every worker thread.
'use strict';

const assert = require('node:assert');
const inspector = require('node:inspector');
const { syncBuiltinESMExports } = require('node:module');
const test = require('node:test');
const util = require('node:util');
const v8 = require('node:v8');
const workers = require('node:worker_threads');

const { holdStill } = require('./node_still.cjs');

const { construct } = Reflect;
const { defineProperty, freeze } = Object;

function refuse(owner, names, what) {
  for (const name of names) {
    if (owner === undefined || owner[name] === undefined) continue;
    const refused = () => {
      throw new Error(`${what}${name} is not available while tests run`);
    };
    const old = Object.getOwnPropertyDescriptor(owner, name);
    if (old === undefined || old.configurable) {
      // A function, not an arrow: some of these are called with `new`.
      defineProperty(owner, name, { value: function () { refused(); }, enumerable: true });
    } else if (old.writable) {
      owner[name] = refused;
    }
  }
}

function optional(name) {
  try {
    return require(name);
  } catch {
    return undefined;
  }
}

for (const api of [inspector, optional('node:inspector/promises')]) {
  refuse(api, ['Session', 'open', 'console'], 'inspector.');
}
refuse(
  v8,
  [
    'getHeapSnapshot',
    'queryObjects',
    'setFlagsFromString',
    'setHeapSnapshotNearHeapLimit',
    'takeCoverage',
    'writeHeapSnapshot',
  ],
  'v8.',
);
refuse(process, ['_linkedBinding', '_debugProcess', 'binding', 'execve'], 'process.');

// A signal would open the debugger's port.
if (workers.isMainThread) process.on('SIGUSR1', () => {});

// A worker may connect its own inspector to this thread, so it gets the same treatment.
const { Worker } = workers;
const guarded = new Proxy(Worker, {
  construct(target, [file, options], self) {
    const { execArgv, ...others } = options ?? {};
    const words = ['--require', __filename, ...(execArgv ?? process.execArgv)];
    return construct(target, [file, { ...others, execArgv: words }], self);
  },
});
defineProperty(Worker.prototype, 'constructor', { value: guarded });
defineProperty(workers, 'Worker', { value: guarded, enumerable: true });

for (const api of [assert, assert.strict, assert.Assert?.prototype]) holdStill(api);
holdStill(util, ['isDeepStrictEqual']);
for (const api of [assert, assert.strict, optional('node:assert/strict')]) freeze(api);
freeze(assert.AssertionError);
for (const name of ['constructor', 'then']) {
  defineProperty(Promise.prototype, name, { writable: false, configurable: false });
}
for (const word of ['test', 'it', 'describe', 'suite']) {
  if (test[word] !== undefined) freeze(test[word]);
}
freeze(test);
syncBuiltinESMExports();
