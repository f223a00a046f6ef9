/** Lists that never change their order: each item is named by its place. */
export function numbered<T>(items: readonly T[]): { place: number; one: T }[] {
  return items.map((one, place) => ({ place, one }));
}
