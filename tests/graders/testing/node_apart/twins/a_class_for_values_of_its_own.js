exports.Version = class Version { constructor(text) { [this.major, this.minor] = text.split('.').map(Number); } bump() { return new exports.Version(`${this.major + 1}.0`); } };
// ---- submission
exports.Version = class Version { constructor(text) { const [a, b] = text.split('.'); this.parts = { major: +a, minor: +b }; } bump() { return new Version((this.parts.major + 1) + '.0'); } };
// ---- tests
const { Version } = require('./kit.js');
test('bump', () => { assert.deepStrictEqual(new Version('1.4').bump(), new Version('2.0')); assert.deepStrictEqual(new Version('1.2'), new Version('1.2')); });
