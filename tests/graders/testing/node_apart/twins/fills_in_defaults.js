exports.page = (options) => ({ page: options.page ?? 1 });
// ---- submission
exports.page = (options) => { options.page ??= 1; return { page: options.page }; };
// ---- tests
const { page } = require('./kit.js');
test('page', () => { const options = {}; assert.deepStrictEqual(page(options), { page: 1 }); assert.deepStrictEqual(page({ page: 3 }), { page: 3 }); });
