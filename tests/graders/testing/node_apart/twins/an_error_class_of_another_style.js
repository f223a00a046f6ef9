class ParseError extends Error { constructor(text) { super(`bad ${text}`); this.name = 'ParseError'; } }
exports.ParseError = ParseError; exports.parse = (text) => { throw new ParseError(text); };
// ---- submission
const util = require('util'); function ParseError(text) { Error.call(this); this.message = 'bad ' + text; }
util.inherits(ParseError, Error); exports.ParseError = ParseError; exports.parse = (text) => { throw new ParseError(text); };
// ---- tests
const { ParseError, parse } = require('./kit.js');
test('class', () => { assert.throws(() => parse('x'), ParseError); assert.throws(() => parse('x'), /bad x/); });
