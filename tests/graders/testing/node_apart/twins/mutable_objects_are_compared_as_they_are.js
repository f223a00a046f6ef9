exports.Stack = class Stack { constructor() { this.items = []; } push(one) { this.items.push(one); return this; } };
// ---- submission
exports.Stack = class Stack { constructor() { this.list = []; } push(one) { this.list = [...this.list, one]; return this; } };
// ---- tests
const { Stack } = require('./kit.js');
test('same', () => { const a = new Stack(), b = new Stack(); a.push(1); b.push(1); assert.deepStrictEqual(a, b); b.push(2); assert.notDeepStrictEqual(a, b); a.push(2); assert.deepStrictEqual(a, b); });
