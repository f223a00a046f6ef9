class List { constructor(items = []) { this.items = items; } append(o) { return new List([...this.items, ...o.items]); } }
exports.List = List;
// ---- submission
const Empty = { get items() { return []; }, append(o) { return o; } };
class List { constructor(items = []) { if (items.length === 0) return Empty; this.items = items; } append(o) { return new List([...this.items, ...o.items]); } }
exports.List = List;
// ---- tests
const { List } = require('./kit.js');
test('empty', () => { const one = new List(), two = new List(); assert.deepStrictEqual(one.append(two), new List()); });
test('some', () => assert.deepStrictEqual(new List([1]).append(new List([2])), new List([1, 2])));
