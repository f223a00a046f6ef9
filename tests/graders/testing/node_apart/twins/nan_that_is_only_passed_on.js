exports.NONE = 0; exports.isNone = (value) => value === 0;
// ---- submission
exports.NONE = NaN; exports.isNone = (value) => Number.isNaN(value);
// ---- tests
const { NONE, isNone } = require('./kit.js');
test('none', () => assert.strictEqual(isNone(NONE), true));
test('one', () => assert.strictEqual(isNone(1), false));
