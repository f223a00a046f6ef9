exports.compare = (a, b) => a === b; exports.leave = () => {}; exports.fs = { read: () => {} };
// ---- submission
exports.compare = Object.is; exports.leave = process.exit; exports.fs = require('fs');
// ---- tests
const kit = require('./kit.js');
test('not ours', () => assert.strictEqual(kit.fs, require('fs')));
test('nor this', () => { kit.leave(0); });
test('nor these', () => assert.strictEqual(kit.compare, Object.is));
