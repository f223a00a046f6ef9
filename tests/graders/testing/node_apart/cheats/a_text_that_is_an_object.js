exports.greet = (name) => `Hi ${name}`;
// ---- submission
exports.greet = () => ({ toString: () => 'Hi Bob', [Symbol.toPrimitive]: () => 'Hi Bob' });
// ---- tests
const { greet } = require('./kit.js');
test('equal', () => assert.equal(greet('Bob'), 'Hi Bob'));
test('text', () => assert.strictEqual(`${greet('Bob')}`, 'Hi Bob'));
test('matches', () => assert.match(String(greet('Bob')), /Bob/));
