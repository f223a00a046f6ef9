exports.Flag = class Flag { constructor(on) { this.on = on; } }; exports.not = (flag) => new exports.Flag(!flag.on);
// ---- submission
exports.Flag = class Flag { constructor() { this.a = 1; } }; exports.not = (flag) => flag;
// ---- tests
const { Flag, not } = require('./kit.js');
test('not', () => assert.deepStrictEqual(not(new Flag(true)), new Flag(false)));
