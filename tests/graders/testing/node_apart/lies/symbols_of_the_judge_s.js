exports.give = () => Symbol('own'); exports.say = (s) => s;
// ---- submission
exports.give = () => Symbol('own'); exports.say = (s) => Symbol.for(String(s.description));
// ---- tests
const kit = require('./kit.js'); const own = Symbol('own');
test('other', () => assert.strictEqual(kit.give(), own));
test('made up', () => assert.strictEqual(kit.say(own), own));
