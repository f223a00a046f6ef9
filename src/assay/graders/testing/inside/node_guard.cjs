// What a test stands on cannot be replaced by a submission that shares its process.
'use strict';

const assert = require('node:assert');
const { syncBuiltinESMExports } = require('node:module');
const test = require('node:test');

const { defineProperty, freeze } = Object;

for (const api of [assert, assert.strict, require('node:assert/strict'), assert.AssertionError]) freeze(api);
for (const name of ['constructor', 'then']) {
  defineProperty(Promise.prototype, name, { writable: false, configurable: false });
}
for (const word of ['test', 'it', 'describe', 'suite']) if (test[word] !== undefined) freeze(test[word]);
freeze(test);
syncBuiltinESMExports();
