exports.Kit = class {}; exports.make = () => new exports.Kit();
// ---- submission
exports.Kit = class { static [Symbol.hasInstance]() { return true; } }; exports.make = () => ({});
// ---- tests
const { Kit, make } = require('./kit.js');
test('is one', () => assert.ok(make() instanceof Kit));
test('is one here', () => assert.ok({} instanceof Kit));
