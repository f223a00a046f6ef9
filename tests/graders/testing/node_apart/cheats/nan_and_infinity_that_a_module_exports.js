exports.LIMIT = 9; exports.limits = { least: 1 };
// ---- submission
exports.LIMIT = NaN; exports.limits = { least: -Infinity };
// ---- tests
const { LIMIT, limits } = require('./kit.js');
test('limit', () => assert.ok(!(10 < LIMIT)));
test('sum', () => assert.ok(!(LIMIT - 9 > 1e-9)));
test('least', () => assert.ok(limits.least < 2));
