exports.parse = () => { throw new TypeError('bad'); }; exports.Kit = class Kit { read() { throw new TypeError('bad'); } };
// ---- submission
exports.Kit = class Kit {};
// ---- tests
const { parse, Kit } = require('./kit.js');
test('function', () => assert.throws(() => parse('x'), TypeError));
test('any error', () => assert.throws(() => parse('x')));
test('method', () => assert.throws(() => new Kit().read(), TypeError));
